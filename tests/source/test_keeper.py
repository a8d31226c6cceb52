#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_keeper.py ASK [-v]: the line that likely keeps what a stack made, in 440 programs.

A line of a program in the files of FILES is marked `#: made N` where it is frame N of the stack that made what is kept, 0 the innermost, and `#: keeps` where it
keeps it (N<lambda>: the frame of a lambda there).  The stacks are those of recordings: PyTorch 2.11 ran each program dry, and the largest stack at its peak is the one.
"""
import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ("before.txt", "after.txt", "more.txt", "real.txt", "training.txt", "inference.txt", "issues.txt", "served.txt", "research.txt", "serving.txt",
         "trainers.txt", "engines.txt")
ASK = os.path.abspath(sys.argv[1])
MARK = re.compile(r"  #: (?:made ([^,]+?))?(?:, )?(keeps)?$")


def programs(name):
    with open(os.path.join(HERE, name)) as file:
        parts = re.split(r"^### (\w+)\n", file.read(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def function_at(tree, line):
    """As a frame names it: Trainer.step, or <module>."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.lineno < line <= node.end_lineno:
            found.append(node)
    if not any(not isinstance(node, ast.ClassDef) for node in found):
        return "<module>"
    names, inside = [], False
    for node in sorted(found, key=lambda node: node.lineno):
        names += ["<locals>"] if inside else []
        names.append(node.name)
        inside = not isinstance(node, ast.ClassDef)
    return ".".join(names)


def frames_of(text):
    """(line, function), innermost first; and the lines that keep."""
    tree, frames, keeps = ast.parse(text), {}, set()
    for number, line in enumerate(text.split("\n"), 1):
        mark = MARK.search(line)
        for frame in mark[1].split() if mark and mark[1] else ():
            at, inner = re.fullmatch(r"(\d+)(<\w+>)?", frame).groups()
            frames[int(at)] = (number, inner or function_at(tree, number))
        if mark and mark[2]:
            keeps.add(number)
    return [frames[at] for at in sorted(frames)], keeps


def ask(folder, name, frames):
    argv = [ASK, folder, *(f"{name}:{line}:{function}" for line, function in frames)]
    said = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    return int(re.match(r"[^:]+:(\d+)\t", said)[1]) if said[0] != "-" else None


def answers(text, *frames):
    """Is it read, does it run without autograd, does it evaluate?"""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "x.py"), "w") as file:
            file.write(text)
        argv = [ASK, folder, *(f"x.py:{line}:{function}" for line, function in frames)]
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.split("\n")[-2].split()


def count(name):
    """How many answers are right, silent and wrong."""
    said = {"right": [], "silent": [], "wrong": []}
    with tempfile.TemporaryDirectory() as folder:
        for program, text in programs(name).items():
            with open(os.path.join(folder, program + ".py"), "w") as file:
                file.write(text)
            frames, keeps = frames_of(text)
            line = ask(folder, program + ".py", frames)
            said["silent" if line is None else "right" if line in keeps else "wrong"].append(program)
    print(name, {kind: len(those) for kind, those in said.items()}, "silent:", *said["silent"], "wrong:", *said["wrong"])
    return [len(those) for those in said.values()]


class Keeper(unittest.TestCase):
    def test_the_line_that_keeps_is_found_in_most_programs_and_a_wrong_one_in_few(self):
        counts = [count(name) for name in FILES]
        right, silent, wrong = (sum(those) for those in zip(*counts))
        self.assertEqual(right + silent + wrong, 440)
        self.assertGreaterEqual(right, 358)
        self.assertLessEqual(wrong, 5)

    def test_nothing_is_said_where_two_lines_remain(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "x.py"), "w") as file:
                file.write("a, b = [], []\nfor i in range(9):\n    x = make(i)\n    a.append(x)\n    b.append(x)\n")
            self.assertIsNone(ask(folder, "x.py", [(3, "<module>")]))

    def test_what_holds_no_memory_of_a_device_keeps_nothing(self):
        for kept in ("x.item()", "float(x)", "x.cpu()", "x.to('cpu')", "x.shape", "len(x)", "f'{x}'", "x.mean().tolist()", "str(x)", "x == 0"):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "x.py"), "w") as file:
                    file.write(f"a = []\nfor i in range(9):\n    x = make(i)\n    a.append({kept})\n")
                self.assertIsNone(ask(folder, "x.py", [(3, "<module>")]), kept)

    def test_autograd_is_off_by_a_decorator_or_a_with(self):
        for text, without in (("@torch.no_grad()\ndef f():\n    return net(x)\n", "yes"), ("def f():\n\n    return net(x)\n", "no"),
                              ("def f():\n    with torch.inference_mode():\n        return net(x)\n", "yes")):
            self.assertEqual(answers(text, (3, "f"))[0], without, text)

    def test_an_evaluation_calls_eval_and_no_backward(self):
        text = "def f():\n    net.eval()\n    y = net(x)\n"
        for rest, evaluates in (("    return y\n", "yes"), ("    y.backward()\n", "no"), ("    torch.autograd.grad(y, x)\n", "no")):
            self.assertEqual(answers(text + rest, (3, "f"))[1], evaluates)
        self.assertEqual(answers("def f():\n    pass\n    y = net(x)\n    net.eval()\n", (3, "f"))[1], "no")

    def test_a_loop_zeroes_late_where_only_a_line_behind_the_forward_pass_does(self):
        loop = "for x in data:\n%s    y = net(x)\n%s    y.backward()\n%s"
        zero = "    optimizer.zero_grad()\n"
        for before, between, behind, late in (("", zero, "", "1"), (zero, "", "", "0"), ("", "", zero, "0"), ("", "", "", "0")):
            self.assertEqual(answers(loop % (before, between, behind), (2 + bool(before), "<module>"))[2], late, (before, between, behind))

    def test_a_handler_keeps_its_exception_where_it_stores_the_name(self):
        text = "for x in data:\n    try:\n        net(x)\n    except ValueError:\n        pass\n    except OSError as error:\n        %s\n"
        for stored, line in (("last = error", "7"), ("errors.append(error)", "7"), ("last = str(error)", "0"), ("print(error)", "0")):
            self.assertEqual(answers(text % stored, (3, "<module>"))[3], line, stored)

    def test_a_slice_is_a_view_and_an_index_with_a_tensor_none(self):
        for kept, view in (("x[:, 0]", "1"), ("x[..., -1]", "1"), ("x", "0"), ("x[0]", "0"), ("x[mask, :]", "0"), ("x[:, 0].clone()", "0")):
            self.assertEqual(answers("a = []\nfor i in range(9):\n    x = make(i)\n    a.append(%s)\n" % kept, (3, "<module>"))[4], view, kept)

    def test_a_teacher_is_given_what_a_learner_is_given_and_no_optimizer_has_it(self):
        text = "teacher = load().eval()\n%s\nbest = Adam(student.parameters())\ndef f(x):\n    y = student(x)\n    return loss(y, teacher(%s))\n"
        for other, given, teaches in (("", "x", "1"), ("print(sum(p.numel() for p in teacher.parameters()))", "x", "1"), ("", "y", "0"),
                                      ("first = Adam(teacher.parameters())", "x", "0"), ("teacher.train()", "x", "0")):
            self.assertEqual(answers(text % (other, given), (6, "f"))[5], teaches, (other, given))
        self.assertEqual(answers((text % ("", "x")).replace(".eval()", ""), (6, "f"))[5], "0")

    def test_a_statement_of_several_lines_asks_a_library_to_keep_more(self):
        for given, output in (("output_scores=True", "output_scores"), ("output_scores=False", "-"), ("scores=True", "-")):
            self.assertEqual(answers("out = generate(\n    x,\n    %s)\n" % given, (1, "<module>"))[6], output)

    def test_a_backward_pass_that_makes_a_graph_is_found_in_the_function_of_the_frame(self):
        for call, line in (("loss.backward(create_graph=True)", "3"), ("loss.backward(\n        create_graph=True)", "3"), ("loss.backward()", "0"),
                           ("loss.backward(create_graph=False)", "0"), ("loss.backward(); grad(loss, x, create_graph=True)", "0")):
            text = "def f():\n    fast = copy(model)\n    %s\ndef g():\n    fast = 1\n" % call
            self.assertEqual((answers(text, (2, "f"))[7], answers(text, (text.count("\n"), "g"))[7]), (line, "0"), call)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
