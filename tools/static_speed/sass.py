# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels as operations, blocks and loops.

Each 128-bit instruction names its operation in its low 9 bits (3 more tell the form of an operand).
The names are those that nvdisasm prints for every kernel of this project on six architectures
(counts.py --against compares them again); an operation that is not in the table is refused."""
from cubin import Unreadable

# What an instruction keeps busy -> operation -> low 9 bits.
OPERATIONS = {
    "hmma": {"HMMA": 0x03C},
    "alu": {"FMNMX": 0x009, "FSEL": 0x008, "FSETP": 0x00B, "IABS": 0x013, "IADD3": 0x010, "IMNMX": 0x017,
            "ISETP": 0x00C, "LEA": 0x011, "LOP3": 0x012, "MOV": 0x002, "P2R": 0x003, "PLOP3": 0x01C,
            "PRMT": 0x016, "R2P": 0x004, "REDUX": 0x1C4, "SEL": 0x007, "SHF": 0x019, "VIADD": 0x036,
            "VIADDMNMX": 0x046, "VIMNMX": 0x048},
    "imad": {"IDP": 0x026, "IMAD": (0x024, 0x025, 0x027)},
    "half": {"HADD2": 0x030, "HFMA2": (0x031, 0x035)},
    "float": {"CS2R": 0x005, "DADD": 0x029, "DMUL": 0x028, "F2F": (0x104, 0x110), "F2FP": 0x03E,
              "F2I": (0x105, 0x111), "FADD": 0x021, "FCHK": 0x102, "FFMA": 0x023, "FMUL": 0x020,
              "I2F": (0x106, 0x112), "I2FP": 0x045, "MUFU": 0x108},
    "shared": {"LDS": 0x184, "LDSM": 0x03B, "SHFL": 0x189, "STS": 0x188},
    "global": {"ATOMG": (0x1A9, 0x1A8), "CCTL": 0x18F, "LD": 0x180, "LDC": 0x182, "LDG": 0x181,
               "LDGSTS": 0x1AE, "RED": 0x18E, "ST": 0x185, "STG": 0x186},
    "local": {"LDL": 0x183, "STL": 0x187},
    "uniform": {"LDCU": 0x1AC, "R2UR": (0x0CA, 0x1C2), "S2R": 0x119, "S2UR": 0x1C3, "UF2I": 0x05C,
                "UFLO": 0x0BD, "UFSETP": 0x053, "UI2F": 0x05A, "UIADD3": (0x090, 0x097),
                "UIMAD": (0x0A4, 0x0A5, 0x0A6), "UIMNMX": 0x085, "UISETP": 0x08C, "ULDC": (0x0B9, 0x0BB),
                "ULEA": 0x091, "ULOP3": 0x092, "UMOV": 0x082, "UPLOP3": 0x09C, "UPRMT": 0x096,
                "USEL": 0x087, "USHF": 0x099, "UVIMNMX": 0x04A, "VOTEU": 0x086},
    "control": {"BAR": 0x11D, "BRA": 0x147, "BSSY": 0x145, "BSYNC": 0x141, "CALL": 0x144, "DEPBAR": 0x11A,
                "ENDCOLLECTIVE": 0x11B, "ERRBAR": 0x1AB, "EXIT": 0x14D, "LDGDEPBAR": 0x1AF,
                "MEMBAR": 0x192, "NOP": 0x118, "RET": 0x150, "WARPSYNC": 0x148, "YIELD": 0x146},
}
CLASSES = tuple(OPERATIONS)
TABLE = {}
for _kind, _names in OPERATIONS.items():
    for _name, _codes in _names.items():
        for _code in _codes if isinstance(_codes, tuple) else (_codes,):
            TABLE[_code] = (_name, _kind)
NEWER = {0x035: ("IADD", "alu")}  # from sm_100 on
ALWAYS = 7  # the predicate that is true


class Instruction:
    """name, class; target: index of the instruction jumped to, or None; falls: may the next run."""

    def __init__(self, word, index, arch):
        code = word & 0x1FF
        found = (NEWER.get(code) if arch >= 100 else None) or TABLE.get(code)
        if found is None:
            raise Unreadable(f"operation 0x{word & 0xFFF:03x} at 0x{16 * index:04x} is not in the table")
        self.name, self.kind = found
        self.target = None
        self.falls = True
        guarded = word >> 12 & 15 != ALWAYS
        if self.name in ("BRA", "CALL"):
            self.target = index + 1 + jump(word, arch) // 16
            # A second predicate, or a uniform one, or the divergence of the warp decides.
            decided = word >> 87 & 15 != ALWAYS or word >> 91 & 1 or word >> 9 & 7 != 4
            self.falls = self.name == "CALL" or guarded or bool(decided)
        elif self.name in ("EXIT", "RET"):
            self.falls = guarded


def jump(word, arch):
    """Bytes from the next instruction to a branch's target."""
    if arch < 90:
        return 4 * signed(word >> 34 & (1 << 48) - 1, 48)
    return 4 * signed((word >> 34 & (1 << 48) - 1) << 8 | word >> 16 & 255, 56)


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def decode(words, arch):
    return [Instruction(word, index, int(arch)) for index, word in enumerate(words)]


class Graph:
    """Blocks of instructions between jumps, and what may follow each."""

    def __init__(self, code):
        leaders = {0}
        for index, one in enumerate(code):
            if one.target is not None or not one.falls:
                leaders.add(index + 1)
            if one.target is not None:
                if not 0 <= one.target < len(code):
                    raise Unreadable(f"a jump at 0x{16 * index:04x} leaves the kernel")
                leaders.add(one.target)
        starts = sorted(leader for leader in leaders if leader < len(code))
        number = {start: i for i, start in enumerate(starts)}
        ends = starts[1:] + [len(code)]
        self.blocks = [code[a:b] for a, b in zip(starts, ends)]
        self.next = []
        for end, block in zip(ends, self.blocks):
            after = []
            if block[-1].falls and end < len(code):
                after.append(number[end])
            if block[-1].target is not None and number[block[-1].target] not in after:
                after.append(number[block[-1].target])
            self.next.append(after)
        self.before = [[] for _ in self.blocks]
        for i, after in enumerate(self.next):
            for j in after:
                self.before[j].append(i)

    def dominators(self):
        """Per block that can be reached, the set of blocks that every way to it passes."""
        order, seen, stack = [], set(), [(0, iter(self.next[0]))]
        seen.add(0)
        while stack:
            block, after = stack[-1]
            for j in after:
                if j not in seen:
                    seen.add(j)
                    stack.append((j, iter(self.next[j])))
                    break
            else:
                order.append(block)
                stack.pop()
        order.reverse()
        found = {0: frozenset([0])}
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                known = [found[i] for i in self.before[block] if i in found]
                now = frozenset.intersection(*known) | {block}
                if found.get(block) != now:
                    found[block] = now
                    changed = True
        return found

    def loops(self):
        """{header: blocks} of the natural loops."""
        over = self.dominators()
        result = {}
        for latch, heads in over.items():
            for header in self.next[latch]:
                if header not in heads:
                    continue
                body = result.setdefault(header, {header})
                stack = [latch]
                while stack:
                    block = stack.pop()
                    if block not in body:
                        body.add(block)
                        stack += [i for i in self.before[block] if i in over]
        return result

    def innermost(self):
        loops = self.loops()
        return {header: body for header, body in sorted(loops.items())
                if not any(other != header and other in body for other in loops)}

    def busiest_way(self, header, body):
        """Instructions of one time round an innermost loop: of all ways from the header back to it,
        the one with most products, then with most loads that feed them, then the shortest. That
        leaves out what is done now and then, and detours for warps that diverged."""
        best = {}
        products = any(count(self.blocks[i], "HMMA") for i in body)
        loads = "LDGSTS" if products else "LDG"

        def value(block):
            if block in best:
                return best[block]
            best[block] = None  # being looked at: a way back to it would be an inner loop
            mine = self.blocks[block]
            score = (count(mine, "HMMA"), count(mine, loads), -len(mine))
            ways = []
            for after in self.next[block]:
                if after == header:
                    ways.append(((0, 0, 0), None))
                elif after in body and value(after) is not None:
                    ways.append((best[after][0], after))
            if ways:
                rest, after = max(ways, key=lambda way: way[0])
                best[block] = (tuple(a + b for a, b in zip(score, rest)), after)
            return best[block]

        value(header)
        way, block = [], header
        while block is not None:
            way += self.blocks[block]
            block = best[block][1]
        return way


def count(code, name):
    return sum(one.name == name for one in code)


class Loop:
    """One time round: instructions by class; `aside` are those of the loop that it passes by."""

    def __init__(self, way, size):
        self.classes = {kind: sum(one.kind == kind for one in way) for kind in CLASSES}
        self.products = count(way, "HMMA")
        self.byte_sums = count(way, "IDP")
        self.all = len(way)
        self.aside = size - len(way)


def main_loops(code):
    """The innermost loops with products; without any, the largest innermost loop; or none."""
    graph = Graph(code)
    found = []
    for header, body in graph.innermost().items():
        size = sum(len(graph.blocks[i]) for i in body)
        found.append(Loop(graph.busiest_way(header, body), size))
    with_products = [loop for loop in found if loop.products]
    return with_products or sorted(found, key=lambda loop: -loop.all)[:1]
