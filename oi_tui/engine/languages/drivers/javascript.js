// Runs blocks of JavaScript for oi-tui:  node javascript.js <folder>
//
// In <folder> lie two FIFOs. From `commands` come lines "run <file>" and "interrupt"; to `events` go "ready <version>",
// "line <n>", "reading", "idle" and "end <status>". What the code prints goes to the terminal and nowhere else.
//
// The main thread evaluates, through V8's own REPL mode: `const` and `let` may be declared again, `await` works at the
// top. A worker thread listens to the commands and watches the main thread through the inspector protocol: it sees and
// stops even a loop that never yields. Lines come from breakpoints that let the code go on at once, until the code turns
// out to compute; then from the CPU profiler's samples.
"use strict";

const fs = require("fs");
const path = require("path");
const inspector = require("inspector");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");

if (isMainThread) evaluate(process.argv[2]);
else watch(workerData);

// ------------------------------------------------------------------------------------------------ the main thread

function evaluate(folder) {
  const util = require("util");
  const { createRequire, Module } = require("module");
  const home = process.cwd();
  prepareGlobals();

  const session = new inspector.Session();
  session.connect();
  const events = fs.openSync(path.join(folder, "events"), "w");
  const timers = trackTimers();
  const handOver = valueReceiver();

  let serial = 0; // number of the block that runs; an odd answer of an older one is ignored
  let running = false;
  let evaluated = false; // its text has been run through; what it started may go on
  let failed = false; // it has reported an error
  let left = null; // the status with which it called process.exit

  process.on("SIGINT", () => {}); // the worker stops the code; without a listener the process would end
  process.on("uncaughtException", (error) => report(error, "Uncaught"));
  process.on("unhandledRejection", (error) => report(error, "Uncaught (in promise)"));
  // A script that leaves takes its timers along, but not the variables of the conversation.
  process.exit = function exit(code) {
    left = Number(code ?? process.exitCode ?? 0) & 255;
    process.exitCode = undefined;
    abandon();
    session.post("Runtime.terminateExecution");
    for (;;); // until that takes effect, which is at once
  };

  const worker = new Worker(__filename, { workerData: folder });
  worker.on("message", ({ kind, code, url }) => {
    if (kind === "run") run(code, url);
    else if (kind === "there?") worker.postMessage("here");
    else if (running) {
      abandon();
      finish(130);
    }
  });

  const STDIN = "TTYWrap"; // as a resource; it is listed from its first use on, whether it is read or not
  const untouched = resources(); // what keeps the event loop alive anyway
  const BACKGROUND = /Server|UDP|FSEvent|StatWatcher|Signal|MessagePort|Worker/; // does not keep a block from ending

  function run(code, url) {
    const mine = ++serial;
    running = true;
    evaluated = failed = false;
    left = null;
    const expression = `${code}\n//# sourceURL=${url}`;
    const parameters = { expression, replMode: true, awaitPromise: true, objectGroup: "block" };
    session.post("Runtime.evaluate", parameters, (failure, reply) => {
      if (mine !== serial || !running) return; // what is left of interrupted code
      evaluated = true;
      if (failure) return finish(left ?? 130); // it was terminated
      if (reply.exceptionDetails) reportDetails(reply.exceptionDetails, code, url);
      else show(reply.result);
      setImmediate(look, mine, 1);
    });
    if (!evaluated) setTimeout(look, 20, mine, 20).unref();
  }

  // A block ends as a script does: when nothing that it started is under way. Servers go on in the background.
  function look(mine, pause) {
    if (mine !== serial || !running) return;
    const pending = underWay();
    const reading = pending.includes(STDIN);
    if (left !== null || (evaluated && pending.length === 0)) return finish(left ?? Number(failed));
    if (pause >= 20) fs.writeSync(events, reading ? "reading\n" : "idle\n");
    setTimeout(look, pause, mine, Math.min(pause * 2, reading ? 300 : 50)).unref();
  }

  function finish(status) {
    running = false;
    session.post("Runtime.releaseObjectGroup", { objectGroup: "block" });
    worker.postMessage(status);
  }

  // Interrupted code must not go on later by its timers, or read what is typed for other code.
  function abandon() {
    timers.clear();
    if (!underWay().includes(STDIN)) return;
    const { stdin } = process;
    for (const name of ["data", "readable", "keypress"]) if (stdin.listenerCount(name)) stdin.removeAllListeners(name);
    stdin.setRawMode?.(false);
    stdin.pause();
  }

  function resources() {
    return process.getActiveResourcesInfo?.() ?? [];
  }

  function underWay() {
    const rest = [...untouched];
    return resources().filter((name) => {
      const at = rest.indexOf(name);
      if (at >= 0) rest.splice(at, 1);
      if (at >= 0 || BACKGROUND.test(name)) return false;
      return name !== STDIN || (process.stdin._handle?.reading && !process.stdin.isPaused());
    });
  }

  // The value of the last expression, as at a prompt, but no page-long handles of things that go on.
  function show(result) {
    if (result.type === "undefined") return;
    handOver(result, (value) => {
      if (value instanceof require("events") || value instanceof Promise) return;
      if (/^(Timeout|Immediate)$/.test(value?.constructor?.name ?? "")) return;
      process.stdout.write(`${util.inspect(value, { maxStringLength: 100000 })}\n`);
    });
  }

  function reportDetails(details, code, url) {
    const { exception, lineNumber, columnNumber } = details;
    if (exception?.className === "SyntaxError" && details.scriptId && !details.stackTrace?.callFrames?.length) {
      const line = code.split("\n")[lineNumber] ?? "";
      failed = true;
      const message = exception.description.split("\n")[0];
      process.stderr.write(`${url}:${lineNumber + 1}\n${line}\n${" ".repeat(columnNumber)}^\n\nUncaught ${message}\n`);
    } else handOver(exception, (value) => report(value, "Uncaught"));
  }

  function report(error, how) {
    failed = true;
    let text;
    try {
      text = util.inspect(error);
    } catch {
      text = "an error that cannot be shown";
    }
    const own = /\n {4}at [^\n]*(?:node:internal|node:inspector|node:events|drivers[\\/]javascript\.js)[^\n]*/g;
    const shown = text.replace(own, (frame) => (frame.endsWith(" {") ? " {" : "")); // what follows the frames stays
    process.stderr.write(`${how} ${shown}\n`);
  }

  // Returns a function that turns what the inspector calls a remote object into the value that it stands for.
  function valueReceiver() {
    let receive;
    let receiver;
    globalThis.$receiver = (value) => receive(value);
    session.post("Runtime.evaluate", { expression: "globalThis.$receiver" }, (_, reply) => {
      receiver = reply.result.objectId;
    });
    delete globalThis.$receiver;
    return (remote, callback) => {
      receive = callback;
      const { objectId, unserializableValue, value } = remote;
      const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
      const functionDeclaration = "function (value) { this(value); }";
      session.post("Runtime.callFunctionOn", { functionDeclaration, objectId: receiver, arguments: [argument] }, () => {});
    };
  }

  // What a script in the working directory would have.
  function prepareGlobals() {
    const module = new Module(path.join(home, "block.js"));
    module.filename = module.id;
    module.paths = Module._nodeModulePaths(home);
    const require = createRequire(module.filename);
    require.main = module;
    const shim = new Module(path.join(home, "import.js"));
    shim.filename = shim.id;
    shim.paths = module.paths;
    shim._compile("module.exports = (name, options) => (options ? import(name, options) : import(name));", shim.id);
    const $mport = shim.exports; // as long as `import`: see `translate`
    const globals = { require, module, exports: module.exports, __filename: module.id, __dirname: home, $mport };
    for (const [name, value] of Object.entries(globals)) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
    }
    process.argv = [process.argv[0], module.id];
  }

  // Knows the timers that are still to fire.
  function trackTimers() {
    const live = new Map();
    for (const kind of ["Timeout", "Interval", "Immediate"]) {
      const make = globalThis[`set${kind}`];
      const end = globalThis[`clear${kind}`];
      const set = function (callback, ...rest) {
        if (typeof callback !== "function") return make(callback, ...rest);
        const timer = make(function (...values) {
          if (kind !== "Interval") live.delete(timer);
          return Reflect.apply(callback, this, values);
        }, ...rest);
        live.set(timer, end);
        return timer;
      };
      const clear = function (timer) {
        live.delete(timer);
        return end(timer);
      };
      Object.defineProperties(set, Object.getOwnPropertyDescriptors(make));
      Object.defineProperties(clear, Object.getOwnPropertyDescriptors(end));
      globalThis[`set${kind}`] = set;
      globalThis[`clear${kind}`] = clear;
    }
    return {
      clear() {
        for (const [timer, end] of live) end(timer);
        live.clear();
      },
    };
  }
}

// ---------------------------------------------------------------------------------------------- the worker thread

function watch(folder) {
  const net = require("net");
  const events = fs.openSync(path.join(folder, "events"), "w");
  const tell = (line) => fs.writeSync(events, `${line}\n`);
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  // Two sessions, because one profile has to begin before another one ends: see `sample`.
  const [session, second] = [new inspector.Session(), new inspector.Session()];
  const post = (method, parameters, to = session) =>
    new Promise((resolve) => to.post(method, parameters ?? {}, (_, reply) => resolve(reply)));

  let url = null; // of the block that runs
  let script = ""; // its id
  let code = null; // as `translate` returns it
  let answered = true; // the main thread has answered the last question
  const breakpoints = new Map(); // id: how often the code may still stop there

  const fd = fs.openSync(path.join(folder, "commands"), fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  let received = "";
  new net.Socket({ fd, readable: true, writable: false }).on("data", (data) => {
    const lines = (received + data).split("\n");
    received = lines.pop();
    for (const line of lines) {
      if (line.startsWith("run ")) run(line.slice(4));
      else if (line === "interrupt") interrupt();
    }
  });
  parentPort.on("message", (status) => {
    answered = true;
    if (status === "here") return;
    url = null;
    disarm();
    tell(`end ${status}`);
  });
  session.on("Debugger.scriptParsed", ({ params }) => {
    if (params.url === url) script = params.scriptId;
  });
  session.on("Debugger.paused", ({ params: { callFrames, hitBreakpoints } }) => {
    const frame = callFrames.find((one) => one.location.scriptId === script);
    if (frame) tell(`line ${frame.location.lineNumber + 1}`);
    for (const id of hitBreakpoints ?? []) {
      const left = (breakpoints.get(id) ?? 1) - 1;
      if (left > 0) breakpoints.set(id, left);
      else {
        breakpoints.delete(id);
        post("Debugger.removeBreakpoint", { breakpointId: id });
      }
    }
    post("Debugger.resume");
  });
  prepare();

  async function prepare() {
    for (const one of [session, second]) {
      one.connectToMainThread();
      await post("Profiler.enable", {}, one);
      await post("Profiler.setSamplingInterval", { interval: 5000 }, one);
    }
    await post("Debugger.enable");
    tell(`ready ${process.version.slice(1)}`);
  }

  async function run(file) {
    code = translate(fs.readFileSync(file, "utf8"));
    url = path.basename(file);
    await arm();
    parentPort.postMessage({ kind: "run", code: code.text, url });
    await follow(url);
  }

  // A statement is met once, an `await` in a loop often; what is met too often is left alone.
  async function arm() {
    const lines = [...[...code.statements].map((line) => [line, 1]), ...[...code.awaits].map((line) => [line, 100])];
    if (lines.length > 500) return;
    const set = lines.map(async ([lineNumber, times]) => {
      const reply = await post("Debugger.setBreakpointByUrl", { url, lineNumber, columnNumber: 0 });
      if (reply?.breakpointId) breakpoints.set(reply.breakpointId, times);
    });
    await Promise.all(set);
  }

  function disarm() {
    for (const breakpointId of breakpoints.keys()) post("Debugger.removeBreakpoint", { breakpointId });
    breakpoints.clear();
  }

  // V8 does not optimise a function that has breakpoints: as soon as the code turns out to compute they go.
  async function follow(mine) {
    for (let turns = 0; url === mine; turns++) {
      await pause(turns < 5 ? 30 : 100);
      if (url !== mine || (await isFree(30))) continue;
      disarm();
      await sample(mine);
      if (url === mine && turns < 20) await arm();
    }
  }

  async function isFree(patience) {
    answered = false;
    parentPort.postMessage({ kind: "there?" });
    for (let waited = 0; !answered && waited < patience; waited += 5) await pause(5);
    return answered;
  }

  // The profiler knows a loop that was optimised while it ran only if it was watching when that happened.
  async function sample(mine) {
    let [current, next] = [session, second];
    let window = 60;
    let last = 0;
    await post("Profiler.start", {}, current);
    while (url === mine && !answered) {
      await pause(window);
      await post("Profiler.start", {}, next);
      const reply = await post("Profiler.stop", {}, current);
      [current, next] = [next, current];
      const line = reply && url === mine ? lastLine(reply.profile) : 0;
      if (line) tell(`line ${line}`);
      // Each window costs a few milliseconds: look less often at what does not change.
      window = line && line !== last ? 60 : Math.min(window * 1.3, 600);
      last = line || last;
    }
    await post("Profiler.stop", {}, current);
  }

  // The line of the block's code that was on the stack last, the innermost of them.
  function lastLine({ nodes, samples }) {
    const byId = new Map(nodes.map((node) => [node.id, node]));
    for (const node of nodes) for (const child of node.children ?? []) byId.get(child).parent = node;
    for (const id of (samples ?? []).reverse()) {
      for (let node = byId.get(id); node; node = node.parent) {
        if (node.callFrame.url !== url) continue;
        const ticks = node.positionTicks ?? [];
        // A frame that only waits for what it called has no ticks of its own; its line is not known.
        if (ticks.length) return ticks.reduce((most, one) => (one.ticks > most.ticks ? one : most)).line;
      }
    }
    return 0;
  }

  // Code that waits can be told to end; code that computes has to be terminated.
  async function interrupt() {
    const mine = url;
    parentPort.postMessage({ kind: "interrupt" });
    await pause(50);
    if (url !== null && url === mine) await post("Runtime.terminateExecution");
  }
}

// A prompt has no place for import declarations, and V8's REPL mode none for `import(…)`. Both become calls of
// `$mport`, on the same lines; nothing else of the code is changed. Finds as well the lines (from 0) on which something
// begins outside of all braces, and those with an `await`.
function translate(code) {
  const statements = new Set();
  const awaits = new Set();
  const edits = [];
  const braces = []; // "{", or "`" for the braces inside a template
  let line = 0;
  let begun = -1; // the last line on which a token was seen
  let previous = ""; // the last token: tells a regular expression from a division
  const token = /\n|[^\S\n]+|\/\/.*|\/\*[^]*?\*\/|"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'|[\p{L}\p{N}$_#]+|[^]/uy;
  const template = /(?:\\[^]|\$(?!\{)|[^\\`$])*(`|\$\{|$)/uy;
  const regex = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/uy;
  const statement =
    /import\s*(?:([\w$]+)\s*(?:,\s*)?)?(?:\*\s*as\s+([\w$]+)\s*)?(?:\{([^}]*)\}\s*)?(from\s*)?("[^"\n]*"|'[^'\n]*')(?:\s*(?:with|assert)\s*(\{[^}]*\}))?/uy;
  const count = (text) => (line += text.split("\n").length - 1);
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(code);
    if (found) at = pattern.lastIndex;
    return found;
  };
  while (at < code.length) {
    const start = at;
    const endsValue = /^[\p{L}\p{N}$_#)\]"'`]/u.test(previous) && !/^(?:return|typeof|case|in|of|new|delete|void|throw|do|else|yield|await)$/.test(previous);
    if (code[at] === "/" && !/^\/[/*]/.test(code.slice(at, at + 2)) && !endsValue && take(regex)) {
      previous = '"';
      continue;
    }
    const word = take(token)[0];
    if (word === "`" || (word === "}" && braces.at(-1) === "`")) {
      if (word === "}") braces.pop();
      const text = take(template);
      count(text[0]);
      if (text[1] === "${") braces.push("`");
      previous = text[1] === "${" ? "{" : "`";
      continue;
    }
    count(word);
    if (/^(?:\s|\/[/*])/.test(word)) continue;
    if (line !== begun && braces.length === 0 && !/^[})\].,]/.test(word)) statements.add(line);
    begun = line;
    if (word === "{") braces.push(word);
    if (word === "}") braces.pop();
    if (word === "await" && previous !== ".") awaits.add(line);
    if (word === "import" && previous !== ".") {
      if (/^\s*\(/.test(code.slice(at))) edits.push([start, at, "$mport"]);
      else if (braces.length === 0 && !/^\s*\./.test(code.slice(at))) {
        at = start;
        const found = take(statement);
        if (found) edits.push([start, at, declaration(found)]);
        else at = start + word.length;
        if (found) count(found[0]);
      }
    }
    previous = word;
  }
  let translated = "";
  let from = 0;
  for (const [start, end, text] of edits) {
    translated += code.slice(from, start) + text;
    from = end;
  }
  return { text: translated + code.slice(from), statements, awaits };
}

function declaration([text, name, all, some, from, source, attributes]) {
  const module = `await $mport(${source}${attributes ? `, { with: ${attributes} }` : ""})`;
  const names = [name && `default: ${name}`, some?.replace(/\bas\b/g, ":").replace(/\s*:\s*/g, ": ")].filter(Boolean);
  let made = module;
  if (all) made = `const ${all} = ${module}${name ? `, { default: ${name} } = ${all}` : ""}`;
  else if (from) made = `const { ${names.join(", ")} } = ${module}`;
  const lines = (part) => part.split("\n").length - 1;
  return made + "\n".repeat(Math.max(0, lines(text) - lines(made)));
}
