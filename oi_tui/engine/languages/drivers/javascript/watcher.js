// The thread beside the one that runs the code: see main.js. It says which line is executed. Lines come from breakpoints
// that let the code go on at once, until the code turns out to compute; then from the CPU profiler's samples.
"use strict";

const fs = require("fs");
const net = require("net");
const path = require("path");
const inspector = require("inspector");
const { parentPort, workerData } = require("worker_threads");
const { translate } = require("./source.js");

watch(workerData);

function watch(folder) {
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
