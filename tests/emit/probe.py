"""Inner functions of the support part, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from tests.emit.calling import c_tensor
from tests.emit.toolchain import LINKED, STRICT, c_compiler, compiled
from tilec.artifact.expression import Expression
from tilec.emit.expressions import Code, code_of
from tilec.emit.header.emit import support
from tilec.emit.header.expressions import C

_FUNCTIONS = """
int probe_overlap(const tilec_tensor *one, const tilec_tensor *other);
int probe_overlap(const tilec_tensor *one, const tilec_tensor *other)
{
    return tilec_may_overlap(one, other);
}
int probe_self(const tilec_tensor *one);
int probe_self(const tilec_tensor *one) { return tilec_overlaps_itself(one); }
unsigned probe_narrowed(double number, int exponent, int fraction);
unsigned probe_narrowed(double number, int exponent, int fraction)
{
    return (unsigned)tilec_narrowed(number, exponent, fraction);
}
double probe_widened(unsigned bits, int exponent, int fraction);
double probe_widened(unsigned bits, int exponent, int fraction)
{
    return tilec_widened(bits, exponent, fraction);
}
void probe_real(double number, char *text);
void probe_real(double number, char *text) { strcpy(text, tilec_real_text(number).text); }
const char *probe_strerror(int status);
const char *probe_strerror(int status) { return tilec_strerror((tilec_status)status); }
int probe_evaluate(int which, const int64_t *wholes, int count, double real, char *text);
int probe_evaluate(int which, const int64_t *wholes, int count, double real, char *text)
{
    tilec_value v[96];
    tilec_evaluation e = {0, 0, 0};
    tilec_wide made;
    memset(v, 0, sizeof v);
    for (int i = 0; i < count; i++)
        v[i].whole = wholes[i];
    v[count].real = real;
    made = evaluate(which, v, &e);
    strcpy(text, tilec_number(made, 10).text);
    return e.overflow + 2 * e.division_by_zero;
}
"""


class Probe:
    """The functions, and the values of some expressions over `names`, which are whole numbers, and
    `real`."""

    def __init__(
        self, folder: Path, names: Sequence[str] = (), expressions: Sequence[Expression] = ()
    ) -> None:
        codes = {name: Code(f"v[{i}].whole", "whole") for i, name in enumerate(names)}
        codes["real"] = Code(f"v[{len(names)}].real", "real")
        cases = [
            f"    case {i}: return {code_of(one, codes, C).text};"
            for i, one in enumerate(expressions)
        ]
        evaluate = [
            "static tilec_wide evaluate(int which, const tilec_value *v, tilec_evaluation *e)",
            *(
                "{",
                "    (void)v, (void)e;",
                "    switch (which) {",
                *cases,
                "    }",
                "    return 0;",
            ),
            "}",
        ]
        folder.mkdir(exist_ok=True)
        source, made = folder / "probe.c", folder / "libprobe.so"
        source.write_text(support() + "\n".join(evaluate) + _FUNCTIONS)
        compiled(c_compiler(), "-std=c99", *STRICT, "-O1", "-shared", "-fPIC", "-o", made, source,
                 *LINKED)  # fmt: skip
        self.library = ctypes.CDLL(str(made))
        self.library.probe_narrowed.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int]
        self.library.probe_widened.restype = ctypes.c_double
        self.library.probe_strerror.restype = ctypes.c_char_p

    def overlap(self, one, other) -> bool:
        pair = [ctypes.byref(c_tensor(array)) for array in (one, other)]
        return bool(self.library.probe_overlap(*pair))

    def overlaps_itself(self, one) -> bool:
        return bool(self.library.probe_self(ctypes.byref(c_tensor(one))))

    def real_text(self, number: float) -> str:
        text = ctypes.create_string_buffer(400)
        self.library.probe_real(ctypes.c_double(number), text)
        return text.value.decode()

    def evaluated(self, which: int, wholes: Sequence[int], real: float) -> tuple[int, int]:
        """The value, and what was noted: 1 for an overflow, 2 for a division by zero."""
        text = ctypes.create_string_buffer(400)
        numbers = (ctypes.c_int64 * len(wholes))(*wholes)
        noted = self.library.probe_evaluate(
            which, numbers, len(wholes), ctypes.c_double(real), text
        )
        return int(text.value), noted
