# SPDX-License-Identifier: Apache-2.0
"""CMake's language as text: commands in their order, blocks as commands that hold others; and one
build file made of two, its test entries from one and all else from the other."""
import collections
import dataclasses
import re

BLOCKS = {"if": "endif", "foreach": "endforeach", "function": "endfunction", "macro": "endmacro",
          "while": "endwhile"}
TOKEN = re.compile(r"""
    (?P<comment>\#\[(?P<a>=*)\[.*?\](?P=a)\]|\#[^\n]*)
  | \[(?P<b>=*)\[(?P<bracket>.*?)\](?P=b)\]
  | "(?P<quoted>(?:[^"\\]|\\.)*)"
  | (?P<open>\() | (?P<close>\)) | (?P<space>\s+)
  | (?P<word>(?:[^\s()\#"\\]|\\.)+)
""", re.VERBOSE | re.DOTALL)


@dataclasses.dataclass
class Node:
    """One command with the blank lines and comments before it; of a block, the opening one."""
    name: str
    args: list
    text: str
    children: list = dataclasses.field(default_factory=list)
    close: str = ""

    def whole(self):
        return self.text + "".join(child.whole() for child in self.children) + self.close

    def is_block(self):
        return self.name in BLOCKS


def parse(text):
    """The commands of a file that CMake takes; what cannot be one raises ValueError."""
    stack, name, args, depth, start, at = [Node("", [], "")], None, [], 0, 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not a build file, at byte {at}")
        at = match.end()
        kind = match.lastgroup
        if kind in ("comment", "space"):
            continue
        if depth == 0 and kind == "word" and name is None:
            name, args = match["word"].lower(), []
        elif kind == "open" and name is not None:
            depth += 1
        elif kind == "close" and depth > 1:
            depth -= 1
        elif kind == "close" and depth == 1:
            depth = 0
            _close(stack, Node(name, args, text[start:at]))
            name, start = None, at
        elif depth:
            args.append(match[kind])
        else:
            raise ValueError(f"not a build file, at byte {at}")
    if len(stack) != 1 or name is not None:
        raise ValueError("a block or a command has no end")
    return stack[0].children


def _close(stack, node):
    """Puts a command that is complete where it belongs."""
    if node.is_block():
        stack[-1].children.append(node)
        stack.append(node)
    elif len(stack) > 1 and node.name == BLOCKS[stack[-1].name]:
        stack.pop().close = node.text
    else:
        stack[-1].children.append(node)


def commands(nodes):
    """Every command, those inside blocks too."""
    for node in nodes:
        yield node
        yield from commands(node.children)


def _keyed(nodes):
    """Yields (key, node): what an entry is called, and which of that name it is."""
    seen = collections.Counter()
    for node in nodes:
        if node.is_block():
            key = (node.name, " ".join(node.args))
        elif node.name == "add_test" and node.args[:1] == ["NAME"]:
            key = (node.name, node.args[1])
        else:
            key = (node.name, node.args[0] if node.args else "")
        seen[key] += 1
        yield key + (seen[key],), node


def _same(a, b):
    return a.whole().split() == b.whole().split()


def differing(base, head, is_test, path=()):
    """The test entries, as paths of keys, that are not the same in both."""
    ours, theirs = dict(_keyed(base)), dict(_keyed(head))
    found = []
    for key, node in theirs.items():
        before = ours.get(key)
        if is_test(node):
            if before is None or not _same(before, node):
                found.append(path + (key,))
        elif node.is_block():
            found += differing(before.children if before else [], node.children, is_test,
                               path + (key,))
    return found + [path + (key,) for key, node in ours.items()
                    if key not in theirs and is_test(node)]


def merged(base, head, is_test, laid, path=()):
    """BASE's text with the test entries of HEAD that `laid` names; the rest is as in BASE."""
    ours, theirs = dict(_keyed(base)), dict(_keyed(head))
    # What is no test, in BASE's order; a test entry that HEAD has not goes when `laid` names it.
    rest = [(key, node) for key, node in ours.items()
            if not is_test(node) or (key not in theirs and path + (key,) not in laid)]
    text = ""

    def take(key, node):
        if node.is_block() and not is_test(node) and key in theirs:
            return (node.text + merged(node.children, theirs[key].children, is_test, laid,
                                       path + (key,)) + node.close)
        return node.whole()

    for key, node in theirs.items():
        if is_test(node):
            chosen = node if path + (key,) in laid else ours.get(key)
            text += chosen.whole() if chosen else ""
        elif any(key == other for other, _ in rest):
            while rest:
                other, before = rest.pop(0)
                text += take(other, before)
                if other == key:
                    break
        elif node.is_block():
            inner = merged([], node.children, is_test, laid, path + (key,))
            text += node.text + inner + node.close if inner else ""
    return text + "".join(take(key, node) for key, node in rest)
