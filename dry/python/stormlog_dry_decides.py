# SPDX-License-Identifier: MIT
"""Whether a value that a line reads may end the program's loop: its source is followed from the line to the conditions that leave a
loop, a function or the program.  A value that is printed, kept or drawn ends nothing.  What is not known may."""
import ast
import builtins
import linecache
import types

from stormlog_dry import is_installed

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LEAVES = (ast.Break, ast.Return, ast.Raise)
EXITS = ("exit", "_exit", "quit", "abort")


def root(node):
    """The name that holds a value: `losses` of losses[3], `self.best` of self.best.value."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.value.id + "." + node.attr if node.value.id == "self" else node.value.id
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def targets(node):
    return [name for part in node.elts for name in targets(part)] if isinstance(node, (ast.Tuple, ast.List)) else [root(node)]


class Follows:
    """One function: the names that hold a value which follows from `line` or from `names`, until there are no more."""

    def __init__(self, body, line, names, known):
        self.line, self.names, self.known = line, set(names), known
        self.got = set()  # names of objects whose method or function got the value: losses.append(), stopper()
        self.ends = self.returns = False
        seen = None
        while seen != (len(self.names), len(self.got), self.ends, self.returns):
            seen = len(self.names), len(self.got), self.ends, self.returns
            for statement in body:
                self.look(statement, False)

    def holds(self, node, got=True):
        """True: the expression has the value."""
        if node is None:
            return False
        if node.lineno <= self.line <= node.end_lineno:
            return True
        roots = {root(part) for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))}
        return bool(roots & self.names or got and roots & self.got)

    def is_common(self, name):
        """A built-in function, or a module."""
        return hasattr(builtins, name) or isinstance(self.known.get(name), types.ModuleType)

    def look(self, node, decided):
        """decided: whether the statement runs follows from the value."""
        if isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            return
        if decided and (isinstance(node, LEAVES) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
                        and (root(node.value.func) in EXITS or getattr(node.value.func, "attr", "") in EXITS)):
            self.ends = True
        if isinstance(node, ast.Return):
            self.returns |= self.holds(node.value)
        tests = getattr(node, "test", None) if isinstance(node, (ast.If, ast.While, ast.Assert)) else getattr(node, "iter", None)
        if isinstance(node, ast.Match if hasattr(ast, "Match") else ()):
            tests = node.subject
        held = self.holds(tests, not isinstance(node, ast.For))
        if held and isinstance(node, (ast.While, ast.For, ast.Assert)):
            self.ends = True
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and (decided or self.holds(node.value)):
            self.names.update(name for target in getattr(node, "targets", None) or [node.target] for name in targets(target) if name)
        for call in ast.walk(node) if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)) else ():
            if isinstance(call, ast.NamedExpr) and self.holds(call.value):
                self.names.add(call.target.id)
            if isinstance(call, ast.Call) and any(map(self.holds, call.args + [word.value for word in call.keywords])):
                name = root(call.func)
                if name and not self.is_common(name):
                    self.got.add(name)
        for name in ("body", "orelse", "finalbody"):
            for inner in getattr(node, name, ()):
                self.look(inner, decided or held)
        for case in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for inner in case.body:
                self.look(inner, decided or held)


def function_at(tree, first, name):
    """The statements of the function whose code begins at that line; of the file where there is none."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS[:2]) and node.name == name and min([node.lineno] + [one.lineno for one in node.decorator_list]) == first:
            return node.body
    return tree.body


def ends(frame):
    """From the innermost frame of the program outwards, as long as a function returns the value or keeps it in its object."""
    names, line = set(), None
    while frame:
        name = frame.f_code.co_name
        if not is_installed(frame.f_code.co_filename) and (name == "<module>" or not name.startswith("<")):  # no list that it is in
            try:
                tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
            except (SyntaxError, ValueError):
                return True
            if not tree.body:
                return True
            found = Follows(function_at(tree, frame.f_code.co_firstlineno, name), frame.f_lineno if line is None else line, names,
                            frame.f_globals)
            if found.ends:
                return True
            names = {name for name in found.names | found.got if name.startswith("self.")}
            line = None if found.returns else -1
            if line == -1 and not names:
                return False
        frame = frame.f_back
    return False
