"""Many headers in one program: nothing clashes, nothing shows, each cubin is loaded once."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.emit.launching import CUBIN, slot_bytes
from tests.emit.toolchain import (
    CXX_STANDARD,
    LINKED,
    STRICT,
    c_compiler,
    compiled,
    cxx_compiler,
    fake_driver,
    run,
)
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header

HEADERS = 100
UNITS = 5


def _write_header(folder, number):
    """`kN.h` with one kernel, `addN`, and a cubin of its own."""
    kernel = add_kernel()
    kernel = replace(
        kernel,
        name=f"add{number}",
        symbol=f"add{number}",
        variants=(replace(kernel.variants[1], symbol=f"add{number}"),),
    )
    artifact = Artifact(manifest(kernel), CUBIN + number.to_bytes(2, "little"))
    for name, text in emit_header([artifact], f"k{number}", EmitOptions()).items():
        (folder / name).write_bytes(text)


def _unit(name, numbers):
    """A translation unit that includes some headers, and launches what they have."""
    return "\n".join(
        [
            *(f'#include "k{number}.h"' for number in numbers),
            f"int {name}(const tilec_tensor *z, const tilec_tensor *x);",
            f"int {name}(const tilec_tensor *z, const tilec_tensor *x)",
            "{",
            *(f"    if (add{n}_launch(NULL, z, x, x, 1)) return {n + 1};" for n in numbers),
            "    return 0;",
            "}",
            "",
        ]
    )


MAIN = """
#define CALL(unit) int unit(const tilec_tensor *z, const tilec_tensor *x);
%s
#undef CALL
static void *launches(void *made)
{
    tilec_tensor z = tilec_vector((void *)0x10000, TILEC_F32, 100);
    tilec_tensor x = tilec_vector((void *)0x20000, TILEC_F32, 100);
    int *failed = (int *)made;
#define CALL(unit) if (!*failed) *failed = unit(&z, &x);
%s
    if (*failed) printf("%%s\\n", tilec_last_message());
    return NULL;
}
int main(int count, char **given)
{
    void *driver = count > 1 ? dlopen(given[1], RTLD_NOW) : NULL;
    void (*describe)(const char *, int, const int *);
    int (*loads)(void), (*launched)(void);
    const int sizes[] = {8, 8, 8, 4, 8};
    char name[32];
    pthread_t threads[16];
    int failed[16] = {0}, i, all = 0;
    if (!driver || !tilec_find(driver, "fake_describe", &describe)
        || !tilec_find(driver, "fake_loads", &loads)
        || !tilec_find(driver, "fake_launches", &launched))
        return 1;
    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "add%%d", i);
        describe(name, 5, sizes);
    }
    if (tilec_set_driver(driver))
        return 2;
    for (i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, launches, &failed[i]);
    for (i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        all |= failed[i];
    }
    printf("%%d %%d %%d\\n", all, loads(), launched());
    return 0;
}
"""


def _main(units):
    calls = "\n".join(f"CALL({unit})" for unit in units)
    return MAIN % (calls, calls)


@pytest.fixture(scope="module")
def program(tmp_path_factory, tools):
    """A hundred headers, twenty in each of five units and all in another, in one program."""
    folder = tmp_path_factory.mktemp("linking")
    for number in range(HEADERS):
        _write_header(folder, number)
    units = [f"unit{i}" for i in range(UNITS)]
    objects = []
    for i, unit in enumerate(units):
        (folder / f"{unit}.c").write_text(_unit(unit, range(i, HEADERS, UNITS)))
        objects.append(_compiled(folder, f"{unit}.c"))
    (folder / "all.c").write_text(_unit("all", range(HEADERS)) + _main([*units, "all"]))
    objects.append(_compiled(folder, "all.c"))
    compiled(c_compiler(), "-o", folder / "program", *objects, *LINKED)
    return folder


def _compiled(folder, source):
    made = folder / f"{source}.o"
    if source.endswith(".cpp"):
        compiled(cxx_compiler(), f"-std={CXX_STANDARD}", *STRICT, "-fPIC", "-c", "-o", made,
                 folder / source)  # fmt: skip
    else:
        compiled(c_compiler(), "-std=c99", *STRICT, "-fPIC", "-c", "-o", made, folder / source)
    return made


def _symbols(path, *options):
    if not shutil.which("nm"):
        pytest.skip("there is no nm")
    return [line.split()[-2:] for line in run("nm", *options, path).stdout.splitlines()]


def test_a_hundred_headers_in_one_program_load_each_cubin_once(program, tools):
    done = run(program / "program", fake_driver(tools))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"0 {HEADERS} {16 * 2 * HEADERS}\n"


def test_units_share_their_state_and_show_nothing_but_it(program):
    for unit in (program / "unit0.c.o", program / "all.c.o"):
        seen = {name for kind, name in _symbols(unit, "--defined-only", "-g")}
        own = {"unit0", "all", "main"}
        assert all(name.startswith("tilec_") for name in seen - own)
        listed = run("readelf", "-sW", unit).stdout.splitlines()
        for line in listed:
            words = line.split()
            if len(words) == 8 and words[-1].startswith("tilec_") and words[4] != "LOCAL":
                assert words[4:6] == ["WEAK", "HIDDEN"], line


def test_a_program_has_one_of_each_state(program):
    names = [name for _, name in _symbols(program / "program")]
    states = [n for n in names if n.endswith(("_library", "_entries", "_image"))]
    for state in ("tilec_state_1", "tilec_lock_1", "tilec_message_1", "tilec_maps_1"):
        assert names.count(state) == 1
    assert len(states) == len(set(states)) == 3 * HEADERS


def test_a_library_exports_its_own_functions_only(program):
    library = program / "libunits.so"
    compiled(c_compiler(), "-shared", "-o", library, program / "unit0.c.o", program / "unit1.c.o",
             *LINKED)  # fmt: skip
    exported = {name for _, name in _symbols(library, "-D", "--defined-only")}
    assert exported == {"unit0", "unit1"}


def test_nothing_links_the_driver(program):
    if not shutil.which("readelf"):
        pytest.skip("there is no readelf")
    needed = run("readelf", "-d", program / "program").stdout
    named = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line]
    libraries = {name.partition(".so")[0] for name in named if not name.startswith("ld-")}
    assert "libc" in libraries and libraries <= {"libc", "libdl", "libpthread"}


def test_c_and_cxx_in_one_program_share_their_state(program, tools):
    (program / "one.c").write_text(_unit("one", [0, 1]))
    text = _unit("two", [1, 2]).replace("int two(", 'extern "C" int two(', 1)
    over = (
        "    return static_cast<int>(static_cast<bool>(status(add1_launch(nullptr, z, x, x, 1))));"
    )
    text += (
        'extern "C" int three(const tilec_tensor *z, const tilec_tensor *x);\n'
        'extern "C" int three(const tilec_tensor *z, const tilec_tensor *x)\n{\n'
        f"    using namespace tilec;\n{over}\n}}\n"
    )
    (program / "two.cpp").write_text(text)
    (program / "mixed.c").write_text('#include "k0.h"\n' + _main(["one", "two", "three"]))
    objects = [_compiled(program, name) for name in ("one.c", "two.cpp", "mixed.c")]
    compiled(cxx_compiler(), "-o", program / "mixed", *objects, *LINKED)
    done = run(program / "mixed", fake_driver(tools))
    assert (done.returncode, done.stdout) == (0, f"0 3 {16 * 5}\n")


def test_without_a_driver_a_program_lives_on(tmp_path):
    _write_header(tmp_path, 0)
    source = tmp_path / "alone.c"
    source.write_text(
        '#include "k0.h"\n'
        "int main(void)\n{\n"
        "    tilec_tensor z = tilec_vector((void *)0x10000, TILEC_F32, 100), x = z;\n"
        "    x.data = (void *)0x20000;\n"
        "    tilec_status status = add0_launch(NULL, &z, &x, &x, 1);\n"
        '    printf("%d %s: %s\\n", status, tilec_strerror(status), tilec_last_message());\n'
        "    return 0;\n}\n"
    )
    compiled(c_compiler(), "-std=c99", *STRICT, "-o", tmp_path / "alone", source, *LINKED)
    done = run(tmp_path / "alone")
    assert done.returncode == 0
    if "libcuda" in done.stdout:  # otherwise there is a driver, and the addresses are no memory
        assert done.stdout.startswith("17 the CUDA driver cannot be loaded")


def test_widths_of_parameters_are_told_right():
    [kernel] = manifest(add_kernel()).kernels
    assert [slot_bytes(slot) for slot in kernel.variants[0].slots] == [8, 8, 8, 4, 8]
