"use strict";

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

module.exports = { translate };
