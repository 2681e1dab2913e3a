# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs and libraries of the build are hardened. WEIR_BINARIES has their paths, one a line, and
WEIR_HARDENING the flags that the compiler was found to know."""

import json
import os
import pathlib
import platform
import struct

from tap import Skip, run, test

# Names of the ELF format.
ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474e551, 0x6474e552
DT_TEXTREL, DT_FLAGS, DT_FLAGS_1 = 22, 30, 0x6ffffffb
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 0x4, 0x8, 0x1, 0x08000000
SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_FUNC = 2
PF_X = 1

# What a function begins with to which an indirect call may go.
LANDING = {'x86_64': b'\xf3\x0f\x1e\xfa'}


class Elf:
    """A 64-bit little-endian ELF file."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.data = pathlib.Path(path).read_bytes()
        if self.data[:6] != b'\x7fELF\x02\x01':
            raise Skip('reads 64-bit little-endian files only')
        (self.type, _, _, _, heads, sections, _, _, head_size, n_heads, section_size,
         n_sections, _) = struct.unpack_from('<HHIQQQIHHHHHH', self.data, 16)
        # type, flags, offset, address, _, size
        self.heads = [struct.unpack_from('<IIQQQQ', self.data, heads + i * head_size)
                      for i in range(n_heads)]
        # _, type, _, _, offset, size, link
        self.sections = [struct.unpack_from('<IIQQQQI', self.data, sections + i * section_size)
                         for i in range(n_sections)]

    def is_program(self):
        return '.so' not in self.name

    def dynamic(self):
        """Returns the dynamic section as {tag: value}."""
        _, _, offset, _, _, size = next(head for head in self.heads if head[0] == PT_DYNAMIC)
        return dict(struct.iter_unpack('<QQ', self.data[offset:offset + size]))

    def symbols(self, kind=SHT_DYNSYM):
        """Gives (name, type, address) of each symbol; the address of a missing one is 0."""
        for _, found, _, _, offset, size, link in self.sections:
            if found != kind:
                continue
            names = self.sections[link][4]
            for name, info, _, _, address, _ in struct.iter_unpack('<IBBHQQ', self.data[offset:offset + size]):
                end = self.data.index(b'\0', names + name)
                yield self.data[names + name:end].decode(), info & 15, address

    def needs(self, name):
        return any(found == name and not address for found, _, address in self.symbols())

    def at(self, address, size):
        for kind, _, offset, start, _, length in self.heads:
            if kind == PT_LOAD and start <= address < start + length:
                return self.data[offset + address - start:][:size]
        raise AssertionError(f'{self.name}: nothing is at {address:#x}')


def binaries():
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a build with sanitizers has their checks instead')
    return [Elf(path) for path in os.environ['WEIR_BINARIES'].split('\n')]


def flags():
    return os.environ['WEIR_HARDENING'].split()


@test
def programs_have_no_fixed_address():
    for elf in binaries():
        assert elf.type == ET_DYN, elf.name
        assert not elf.is_program() or elf.dynamic().get(DT_FLAGS_1, 0) & DF_1_PIE, elf.name
        assert DT_TEXTREL not in elf.dynamic(), elf.name
        assert not elf.dynamic().get(DT_FLAGS, 0) & DF_TEXTREL, elf.name


@test
def symbols_are_bound_at_the_start_and_then_read_only():
    for elf in binaries():
        found = elf.dynamic()
        assert found.get(DT_FLAGS, 0) & DF_BIND_NOW or found.get(DT_FLAGS_1, 0) & DF_1_NOW, elf.name
        assert any(head[0] == PT_GNU_RELRO for head in elf.heads), elf.name


@test
def no_stack_is_executable():
    for elf in binaries():
        kinds = {head[0]: head[1] for head in elf.heads}
        assert PT_GNU_STACK in kinds and not kinds[PT_GNU_STACK] & PF_X, elf.name


@test
def functions_check_their_stacks():
    for elf in binaries():
        assert elf.needs('__stack_chk_fail'), elf.name


@test
def libc_checks_the_sizes_of_buffers():
    """functions of libc that know the sizes of buffers are used"""
    if not any(flag.startswith('-D_FORTIFY_SOURCE') for flag in flags()):
        raise Skip('a build that is not optimized has no such checks')
    checked = {elf.name for elf in binaries()
               if any(name.startswith('__') and name.endswith('_chk') for name, _, _ in elf.symbols())}
    assert {'rtsp-proxy', 'rtsp-load', 'libgstweir.so'} <= checked, checked


@test
def indirect_calls_land_on_functions_only():
    machine = platform.machine()
    if machine not in LANDING or '-fcf-protection=full' not in flags():
        raise Skip('the compiler or the processor has no such check')
    for elf in binaries():
        kind = SHT_SYMTAB if elf.is_program() else SHT_DYNSYM
        # The functions before main() are libc's.
        names = {'main'} if elf.is_program() else None
        found = [(name, elf.at(address, 4)) for name, what, address in elf.symbols(kind)
                 if what == STT_FUNC and address and (not names or name in names)
                 and name not in ('_init', '_fini')]
        assert found, elf.name
        assert all(begin == LANDING[machine] for _, begin in found), (elf.name, found)


@test
def each_source_is_compiled_with_each_flag():
    """each source of the programs and plugins is compiled with each flag"""
    binaries()
    build = os.environ['WEIR_BUILD']
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    ours = [each for each in commands
            if os.path.normpath(os.path.join(build, each['file'])).startswith(
                tuple(os.path.join(os.environ['WEIR_SOURCE'], folder) for folder in ('apps/', 'plugins/')))]
    assert len(ours) > 300 and len(flags()) >= 3, (len(ours), flags())
    for each in ours:
        words = each['command'].split()
        assert all(flag in words for flag in flags()), (each['file'], flags())


if __name__ == '__main__':
    run()
