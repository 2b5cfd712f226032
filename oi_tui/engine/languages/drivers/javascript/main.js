// Runs blocks of JavaScript for oi-tui:  node main.js <folder>
//
// In <folder> lie two FIFOs. From `commands` come lines "run <file>" and "interrupt"; to `events` go "ready <version>",
// "line <n>", "reading", "idle" and "end <status>". What the code prints goes to the terminal and nowhere else.
//
// The main thread evaluates, through V8's own REPL mode: `const` and `let` may be declared again, `await` works at the
// top. A worker thread (watcher.js) listens to the commands and watches the main thread through the inspector protocol:
// it sees and stops even a loop that never yields.
"use strict";

const fs = require("fs");
const path = require("path");
const inspector = require("inspector");
const util = require("util");
const { Module, createRequire } = require("module");
const { Worker } = require("worker_threads");

evaluate(process.argv[2]);

function evaluate(folder) {
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

  const worker = new Worker(path.join(__dirname, "watcher.js"), { workerData: folder });
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
    const own = /\n {4}at [^\n]*(?:node:internal|node:inspector|node:events|drivers[\\/]javascript[\\/])[^\n]*/g;
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
