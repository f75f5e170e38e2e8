# SPDX-License-Identifier: Apache-2.0
"""Kernels inside object files: their machine code and what the compiler wrote beside it.

An object that nvcc made holds a fat binary, and that one ELF file for each architecture, with a
section `.text.KERNEL` for each kernel. Both forms are read here with struct alone, so that no tool
of the CUDA toolkit is needed; a compressed entry is refused."""
import struct

CONTAINER = 0xBA55ED50
ELF = b"\x7fELF"
KIND_ELF = 2
REGISTERS = 0x2F
MOST_THREADS = 0x05


class Unreadable(ValueError):
    """An object file whose form is not the one described here."""


class Kernel:
    """One kernel for one architecture: words are 128-bit instructions in order of address."""

    def __init__(self, name, arch, words, registers, shared, threads):
        self.name = name
        self.arch = arch
        self.words = words
        self.registers = registers
        self.shared = shared
        self.threads = threads


def sections(elf):
    """[(name, flags and figures of the header, bytes)] of an ELF64 file."""
    if elf[:4] != ELF or elf[4] != 2:
        raise Unreadable("not an ELF64 file")
    at, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<3H", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, at + size * i) for i in range(count)]
    strings = headers[names][4]
    result = []
    for header in headers:
        begin = strings + header[0]
        name = elf[begin:elf.index(b"\0", begin)].decode()
        nobits = header[1] == 8
        result.append((name, header, b"" if nobits else elf[header[4]:header[4] + header[5]]))
    return result


def attributes(data):
    """(attribute, value) of a section .nv.info: a number, or bytes."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            yield attribute, data[at:at + value]
            at += value
        else:
            yield attribute, value


def kernels_of_elf(elf, arch):
    parts = sections(elf)
    by_name = {name: data for name, _, data in parts}
    symbols = [name for name in by_name if name == ".symtab"]
    if not symbols:
        raise Unreadable("no symbols")
    strings = by_name[".strtab"]
    table = by_name[".symtab"]
    registers = {}
    for attribute, value in attributes(by_name.get(".nv.info", b"")):
        if attribute == REGISTERS:
            index, count = struct.unpack("<II", value)
            begin, = struct.unpack_from("<I", table, 24 * index)
            registers[strings[begin:strings.index(b"\0", begin)].decode()] = count
    sizes = {name: header[5] for name, header, _ in parts}
    result = []
    for name, _, data in parts:
        if not name.startswith(".text.") or len(data) % 16 != 0:
            continue
        kernel = name[len(".text."):]
        if ".nv.info." + kernel not in by_name:
            continue  # a function that kernels call
        threads = 0
        for attribute, value in attributes(by_name[".nv.info." + kernel]):
            if attribute == MOST_THREADS:
                x, y, z = struct.unpack("<III", value)
                threads = x * y * z
        words = [int.from_bytes(data[i:i + 16], "little") for i in range(0, len(data), 16)]
        if kernel not in registers:
            raise Unreadable(f"{kernel}: no count of registers")
        result.append(Kernel(kernel, arch, words, registers[kernel],
                             sizes.get(".nv.shared." + kernel, 0), threads))
    return result


def elf_files(path):
    """(architecture, ELF bytes) of every entry of an object's fat binary."""
    with open(path, "rb") as file:
        data = file.read()
    found = [bytes_ for name, _, bytes_ in sections(data) if name == ".nv_fatbin"]
    at = 0
    fat = found[0] if found else b""
    while at + 16 <= len(fat):
        magic, _, header, size = struct.unpack_from("<IHHQ", fat, at)
        if magic != CONTAINER:
            at += 8  # containers are padded
            continue
        entry = at + header
        end = entry + size
        while entry < end:
            kind, _, length, payload = struct.unpack_from("<HHIQ", fat, entry)
            arch, = struct.unpack_from("<I", fat, entry + 0x1C)
            if kind == KIND_ELF:
                elf = fat[entry + length:entry + length + payload]
                if elf[:4] != ELF:
                    raise Unreadable(f"{path}: the code for sm_{arch} is compressed; build it with "
                                     "-Xfatbin -no-compress")
                yield str(arch), elf
            entry += length + payload
        at = end


def kernels(path, architectures):
    """Every kernel of an object file for these architectures."""
    result = []
    for arch, elf in elf_files(path):
        if arch in architectures:
            result += kernels_of_elf(elf, arch)
    return result
