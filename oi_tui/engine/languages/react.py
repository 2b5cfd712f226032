"""React: a component becomes a page that draws it."""

from __future__ import annotations

import html
import json
import re

from oi_tui.engine.languages.page import PageLanguage

REACT = "18.3.1"
BABEL = "7.26.4"
_CDN = "https://esm.sh"

_IMPORTED = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["']([^"'.\s/][^"'\s]*)["']""")
_MOUNTS = re.compile(r"\b(?:createRoot|hydrateRoot)\s*\(|\bReactDOM\s*\.\s*render\s*\(")
_NAMED_DEFAULT = re.compile(r"\bexport\s+default\s+(?:async\s+)?(?:function\s+|class\s+)?([A-Z]\w*)")
_DEFAULT = re.compile(r"\bexport\s+default\s+")
_COMPONENT = re.compile(r"^(?:export\s+)?(?:function|class|const|let|var)\s+([A-Z]\w*)", re.MULTILINE)

_PAGE = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<script type="importmap">{imports}</script>
<script src="https://unpkg.com/@babel/standalone@{babel}/babel.min.js"></script>
</head>
<body>
<div id="root"></div>
<script type="text/babel" data-type="module" data-presets="react,typescript">
{code}
</script>
</body>
</html>
"""

_PRELUDE = """import React from "react";
import * as ReactDOM from "react-dom/client";
"""


class React(PageLanguage):
    """A block is a component, with or without imports. The page fetches React when it is opened."""

    name = "react"
    title = "React"
    aliases = ("jsx",)
    file_extension = "jsx"

    def page(self, code: str) -> str:
        names = ["react", "react-dom", "react-dom/client", "react/jsx-runtime", *_IMPORTED.findall(code)]
        imports = {name: _address(name) for name in names}
        body, component = _with_component(code)
        lines = [line for line in _PRELUDE.splitlines() if not _is_imported(line, code)]
        lines.append(body)
        if not _MOUNTS.search(code):
            lines.append(f'ReactDOM.createRoot(document.getElementById("root")).render(<{component} />);')
        script = "\n".join(lines).replace("</script", "<\\/script")
        return _PAGE.format(
            title=html.escape(component), imports=json.dumps({"imports": imports}), babel=BABEL, code=script
        )


def _address(name: str) -> str:
    package, _, rest = name.partition("/")
    if package in ("react", "react-dom"):
        return f"{_CDN}/{package}@{REACT}{'/' + rest if rest else ''}"
    return f"{_CDN}/{name}?deps=react@{REACT},react-dom@{REACT}"


def _with_component(code: str) -> tuple[str, str]:
    """The code, and the name of the component to draw: the default export, `App`, or the last one."""
    if named := _NAMED_DEFAULT.search(code):
        return code, named[1]
    if _DEFAULT.search(code):
        return _DEFAULT.sub("const App = ", code, count=1), "App"
    names = _COMPONENT.findall(code)
    return code, "App" if "App" in names or not names else names[-1]


def _is_imported(line: str, code: str) -> bool:
    """Whether the code imports, or declares, the name that this line would bring in."""
    name = "ReactDOM" if "ReactDOM" in line else "React"
    return bool(re.search(rf"\bimport\b[^;\n]*\b{name}\b|\b(?:const|let|var)\s+{name}\b", code))
