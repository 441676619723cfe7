"""Text to tree: what each construct becomes, precedence, and the places of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import (
    LEVELS,
    NOWHERE,
    all_nodes,
    children,
    expression,
    parsed,
    refused,
    shape,
    text_of,
)

from tilec.frontend import ast

CASES = Path(__file__).parents[1] / "cases"
ACCEPTED = sorted((CASES / "accept").glob("*.tile"))

# Every construct that the language has, for tests that go over all nodes.
ALL_CONSTRUCTS = """//! The file.
/* a /* nested */ comment */
use other::name;
use other::{first, second};

pub const WIDTH: usize = 4 * 0x10_usize; // not a doc
const EPS: f32 = 1.0e-6;

/// A helper.
fn helper<T: Num, const M: usize, const E: bool>(
    mut x: Tile<T, M>,
    (a, b): (f32, i32),
) -> (T, [i32; 3]) {
    let [p, _, mut q]: [usize; 3] = [0; 3];
    q += p << 2;
    x = -x * (a as i32 + 3) & !b ^ 1 | 2;
    for i in (0..=q).step_by(2).rev() {
        while i < 3 && !E || p >= 1 { continue; }
        loop { break; }
    }
    match p { 0 | 1 => q = 1, 2..=3 if E => { q -= 1; } -4 => (), _ => helper(x, (a, b)), }
    if E { return; } else if p == 1 { q %= 2; } else { x.store(1); }
    assert!(p != 1, "message");
    let y = if E { 1.0 } else { unsafe { x.load_unchecked::<{M / 2}, 4>([p]) } } + x.0.1;
    let z = { let inner = x[0]; inner };
    let w;
    (x.reduce::<{-1}>(0.0, |a, b| a.max(b)), [1, 2, T::MAX])
}

#[kernel(grid = [N.div_ceil(256), 1, 1])]
#[instance(T = bf16, B = 128, F = true)]
#[hint(fast_math, stages = 3)]
pub fn run<T: Any, N: Dim, const B: usize>(
    z: Part<&mut Tensor<T, N, {B * 2}>, B>,
    count: &Atomic<Tensor<u32, 4>>,
) {
    swap(&mut z, &count);
}
"""
PROGRAMS = [path.read_text(encoding="utf-8") for path in ACCEPTED] + [ALL_CONSTRUCTS]


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_accepted_programs_parse(path: Path) -> None:
    parsed(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", [CASES / "reject" / f"{n}.tile" for n in ("syntax_two_errors", "not_in_language")]
)
def test_refused_programs_give_their_codes_and_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    head, _, expected = text.splitlines()[0].partition("expect: ")
    found = [f"{d.code} line {text[: d.span.start].count(chr(10)) + 1}" for d in refused(text)]
    assert head == "// "
    assert ", ".join(found) == expected


# ---- places ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", PROGRAMS)
def test_nodes_lie_inside_their_parents(text: str) -> None:
    for node in all_nodes(parsed(text)):
        assert 0 <= node.span.start <= node.span.end <= len(text)
        for child in children(node):
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_text_at_a_node_is_the_node(text: str) -> None:
    for node in all_nodes(parsed(text)):
        written = text[node.span.start : node.span.end]
        match node:
            case ast.Name(text=name):
                assert written == name
            case ast.Block(statements=(ast.Assign(span=place),)) if place == node.span:
                pass  # the block that an assignment as an arm of a `match` stands for
            case ast.Block(unsafe_span=None):
                assert written[0] + written[-1] == "{}"
            case ast.Block(unsafe_span=word):
                assert text[word.start : word.end] == "unsafe"
                assert written.startswith("unsafe")
            case ast.Binary(operator=operator, operator_span=place):
                assert text[place.start : place.end] == operator
            case ast.Assign(operator=operator, operator_span=place):
                assert text[place.start : place.end] == operator
            case ast.Let() | ast.ExpressionStatement() | ast.Const() | ast.Use():
                assert written[-1] in ";}"
            case ast.Function():
                assert written.startswith(("#[", "pub ", "fn "))
            case ast.Attribute():
                assert written.startswith("#[")
                assert written.endswith("]")


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_text_at_an_expression_parses_to_the_expression(text: str) -> None:
    for node in all_nodes(parsed(text)):
        if isinstance(node, ast.Expression) and not isinstance(node, ast.Range):
            # As an argument, where closures and references may stand; a literal range in the head
            # of a `for` may not, nor may the assignment that an arm of a `match` has as its block.
            piece = text[node.span.start : node.span.end]
            if "..=" not in piece and piece != "q = 1":
                call = expression(f"{_macro_or_function(node)}({piece})")
                assert isinstance(call, ast.Call | ast.MacroCall)
                assert shape(call.arguments[0]) == shape(node)


def _macro_or_function(node: ast.Expression) -> str:
    return "assert!" if isinstance(node, ast.StringLiteral) else "f"


# ---- precedence --------------------------------------------------------------------------------


@pytest.mark.parametrize("weak", [operator for level in LEVELS[1:] for operator in level])
@pytest.mark.parametrize("strong", ["*", "+", "<<", "&", "^", "|", "==", "&&"])
def test_the_stronger_operator_takes_its_operands_first(weak: str, strong: str) -> None:
    level = {operator: i for i, names in enumerate(LEVELS) for operator in names}
    if level[strong] >= level[weak]:
        return
    assert shape(expression(f"a {weak} b {strong} c")) == shape(
        expression(f"a {weak} (b {strong} c)")
    )
    assert shape(expression(f"a {strong} b {weak} c")) == shape(
        expression(f"(a {strong} b) {weak} c")
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a - b - c", "(a - b) - c"),
        ("a - b + c", "(a - b) + c"),
        ("-a.b()", "-(a.b())"),
        ("-a * b", "(-a) * b"),
        ("-a as i32", "(-a) as i32"),
        ("!a == b", "(!a) == b"),
        ("a as i32 * b", "(a as i32) * b"),
        ("a as i32 as f32", "(a as i32) as f32"),
        ("a & b == c", "(a & b) == c"),
        ("a == b & c", "a == (b & c)"),
        ("-1.max(2)", "-(1.max(2))"),
        ("- -a", "-(-a)"),
        ("a[0].1.b()[2]", "(((a[0]).1).b())[2]"),
        ("{ a } + b", "({ a }) + b"),
    ],
)
def test_operators_group_as_in_rust(text: str, meant: str) -> None:
    assert shape(expression(text)) == shape(expression(meant))


names = st.sampled_from(["a", "b", "T::MAX", "x1"]).map(
    lambda text: ast.Path(
        NOWHERE, tuple(ast.Segment(NOWHERE, ast.Name(NOWHERE, t)) for t in text.split("::"))
    )
)
integers = st.builds(
    ast.IntegerLiteral,
    st.just(NOWHERE),
    st.integers(0, 2**64 - 1),
    st.sampled_from([None, "u8", "i32", "usize", "f32"]),
)
floats = st.builds(
    ast.FloatLiteral,
    st.just(NOWHERE),
    st.sampled_from(["0.5", "1.25", "1e3", "2.5e-3", "1E+2"]),
    st.none(),
)
leaves = names | integers | floats | st.builds(ast.BoolLiteral, st.just(NOWHERE), st.booleans())


def _larger(parts: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    here = st.just(NOWHERE)
    operators = st.sampled_from([operator for level in LEVELS[1:] for operator in level])
    several = st.lists(parts, max_size=3).map(tuple)
    name = st.sampled_from(["exp", "max"]).map(lambda text: ast.Name(NOWHERE, text))
    target = st.just(ast.PathType(NOWHERE, ast.Name(NOWHERE, "i32")))
    return st.one_of(
        st.builds(ast.Binary, here, operators, here, parts, parts),
        st.builds(ast.Binary, here, operators, here, parts, parts),
        st.builds(ast.Unary, here, st.sampled_from("-!"), parts),
        st.builds(ast.Cast, here, parts, target),
        st.builds(ast.MethodCall, here, parts, name, st.none(), several),
        st.builds(ast.Index, here, parts, parts),
        st.builds(ast.Field, here, names, st.integers(0, 3)),
        st.builds(ast.Call, here, names, several),
        st.builds(ast.Tuple, here, several),
        st.builds(ast.Array, here, several),
    )


@given(st.recursive(leaves, _larger, max_leaves=12))
def test_an_expression_printed_with_the_fewest_parentheses_reads_back(tree: ast.Expression) -> None:
    assert shape(expression(text_of(tree))) == shape(tree)


# ---- literals, names, comments -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "suffix"),
    [
        ("0", 0, None),
        ("1_000", 1000, None),
        ("0xff", 255, None),
        ("0xFF_u8", 255, "u8"),
        ("0o17", 15, None),
        ("0b1010_1010", 170, None),
        ("7usize", 7, "usize"),
        ("1f32", 1, "f32"),
        ("0x1f32", 0x1F32, None),
        ("1_u64", 1, "u64"),
        ("340282366920938463463374607431768211455", 2**128 - 1, None),
    ],
)
def test_integer_literals(text: str, value: int, suffix: str | None) -> None:
    assert shape(expression(text)) == ("IntegerLiteral", value, suffix)


@pytest.mark.parametrize(
    ("text", "value", "suffix"),
    [
        ("1.0", 1.0, None),
        ("1.", 1.0, None),
        ("1e3", 1000.0, None),
        ("1.5E-3", 0.0015, None),
        ("1_0.2_5", 10.25, None),
        ("1.0e30f32", 1.0e30, "f32"),
        ("2.0_f64", 2.0, "f64"),
        ("1e3f32", 1000.0, "f32"),
    ],
)
def test_float_literals(text: str, value: float, suffix: str | None) -> None:
    literal = expression(text)
    assert isinstance(literal, ast.FloatLiteral)
    assert (float(literal.text), literal.suffix) == (value, suffix)


@pytest.mark.parametrize("text", ["0b2", "0o8", "0x", "1u7", "1.0i32", "1.0bf16", "1e", "0b1f32"])
def test_malformed_literals_are_syntax_errors(text: str) -> None:
    assert [d.code for d in refused(f"const X: T = {text};")] == ["E0101"]


def test_a_point_after_an_integer_belongs_to_what_follows_it() -> None:
    assert isinstance(expression("1.max(2)"), ast.MethodCall)
    assert isinstance(expression("t.0.1"), ast.Field)
    [item] = parsed("fn f() { for i in 0..3 {} }").items
    assert isinstance(item, ast.Function)
    [loop] = item.body.statements
    assert isinstance(loop, ast.ExpressionStatement)
    assert isinstance(loop.value, ast.For)
    assert isinstance(loop.value.iterable, ast.Range)


def test_strings_are_unescaped() -> None:
    [item] = parsed(r'fn f() { assert!(a, "\t\"\u{e9}\x41\\", r#"\n"#); }').items
    assert isinstance(item, ast.Function)
    [statement] = item.body.statements
    assert isinstance(statement, ast.ExpressionStatement)
    assert isinstance(statement.value, ast.MacroCall)
    texts = [a.value for a in statement.value.arguments if isinstance(a, ast.StringLiteral)]
    assert texts == ['\t"\u00e9A\\', r"\n"]


def test_words_that_start_like_keywords_are_names_and_so_are_raw_keywords() -> None:
    names = [node.text for node in all_nodes(expression("r#match + iffy + _x + r#letter"))
             if isinstance(node, ast.Name)]  # fmt: skip
    assert sorted(names) == ["_x", "iffy", "letter", "match"]


def test_nested_comments_and_comment_marks_in_strings() -> None:
    assert shape(expression("1 /* a /* b */ + 2 */ + 3")) == shape(expression("1 + 3"))
    [item] = parsed('fn f() { assert!(a, "// /* no comment"); }').items
    assert isinstance(item, ast.Function)


def test_doc_comments_go_to_their_function_and_file() -> None:
    file = parsed(
        "//! File.\n/// One.\n/// Two.\n// no\n#[kernel]\nfn f() { /// in\n }\nfn g() {}\n"
    )
    assert file.documentation == "File."
    assert [i.documentation for i in file.items if isinstance(i, ast.Function)] == [
        "One.\nTwo.",
        "",
    ]


# ---- items, types, statements ------------------------------------------------------------------


def test_nested_generic_arguments_close_with_one_mark() -> None:
    [item] = parsed("fn f(x: A<B<4>>, y: A<B<{1 >> 2}>>) { let z: A<B<4>>= x; }").items
    assert isinstance(item, ast.Function)
    first = item.parameters[0].type
    assert shape(first) == (
        "PathType", ("Name", "A"),
        (("PathType", ("Name", "B"), (("ConstArgument", ("IntegerLiteral", 4, None)),)),),
    )  # fmt: skip


def test_a_bare_generic_argument_is_a_type_until_names_are_resolved() -> None:
    call = expression("x.load::<B, 4, {B / 2}>([0])")
    assert isinstance(call, ast.MethodCall)
    assert [type(argument) for argument in call.generics or ()] == [
        ast.PathType,
        ast.ConstArgument,
        ast.ConstArgument,
    ]


def test_an_attribute_with_empty_parentheses_is_the_attribute_without() -> None:
    assert shape(parsed("#[kernel()]\nfn f() {}")) == shape(parsed("#[kernel]\nfn f() {}"))


def test_trailing_commas_change_nothing() -> None:
    with_commas = "fn f<T: Num,>(x: A<T,>, (a, b,): (i32, i32,),) { g(1, 2,)[[1, 2,]]; }"
    without = "fn f<T: Num>(x: A<T>, (a, b): (i32, i32)) { g(1, 2)[[1, 2]]; }"
    assert shape(parsed(with_commas)) == shape(parsed(without))


def test_parentheses_make_a_tuple_only_with_a_comma() -> None:
    assert isinstance(expression("(1)"), ast.IntegerLiteral)
    assert isinstance(expression("(1,)"), ast.Tuple)
    assert isinstance(expression("()"), ast.Tuple)


@pytest.mark.parametrize(
    ("body", "statements", "has_value"),
    [
        ("a", 0, True),
        ("a;", 1, False),
        ("if a { b } else { c }", 0, True),
        ("if a { b } else { c };", 1, False),
        ("if a { b }", 1, False),
        ("for i in 0..3 {}", 1, False),
        ("if a {} b", 1, True),
        ("{ a }", 0, True),
        ("if a { b } -1", 1, True),
        ("let a = { 1 } + 2; ;", 1, False),
    ],
)
def test_the_value_of_a_block(body: str, statements: int, has_value: bool) -> None:
    block = expression(f"{{ {body} }}")
    assert isinstance(block, ast.Block)
    assert (len(block.statements), block.tail is not None) == (statements, has_value)


def test_an_assignment_as_an_arm_is_a_block_with_it() -> None:
    with_block = shape(expression("match a { 0 => { b = 1; } _ => c }"))
    assert shape(expression("match a { 0 => b = 1, _ => c }")) == with_block
