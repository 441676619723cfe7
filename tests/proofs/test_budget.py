"""Proofs end within their budget, with a verdict or by saying that there is none."""

from __future__ import annotations

import pytest

from tests.proofs.random_chains import checked, kernel
from tilec.compilation import DEFAULT_PROOF_BUDGET
from tilec.integers import answers
from tilec.integers.budget import Budget, Phase, Undecided, question, spend
from tilec.integers.formula import at_least, equal, less
from tilec.integers.polynomial import Unknown, variable
from tilec.integers.solver import can_hold, smallest

MANY_STORES = (
    "#[kernel(grid = [{grid}])]\n"
    "pub fn k<N: Dim, G: Dim>(z: &mut Tensor<f32, N>, g: &Tensor<f32, G>) {{\n"
    "    let [p, _, _] = program_id();\n{stores}}}\n"
)


def test_a_question_takes_no_more_than_its_part_and_leaves_the_rest() -> None:
    budget = Budget(10_000)
    with budget.phase(Phase.RACES):
        with pytest.raises(Undecided), question(0.5):
            spend(5_000)
        with question(0.5):
            spend(500)
    assert budget.undecided(Phase.RACES) == 1
    assert budget.undecided(Phase.BOUNDS) == 0
    assert budget.spent() <= 10_000


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Budget]:
    """The budgets that a test makes, also inside of the compiler."""
    found: list[Budget] = []
    before = Budget.__init__

    def kept(budget: Budget, *arguments: int) -> None:
        before(budget, *arguments)
        found.append(budget)

    monkeypatch.setattr(Budget, "__init__", kept)
    return found


@pytest.mark.parametrize("seed", (3, 22, 48))
def test_random_chains_take_no_more_steps_than_there_are(seed: int, made: list[Budget]) -> None:
    first = checked(kernel(seed), 300_000)
    assert all(budget.spent() <= budget.steps for budget in made)
    assert checked(kernel(seed), 300_000) == first


@pytest.mark.parametrize("seed", (49, 147, 411))
def test_what_proofs_cost_does_not_depend_on_addresses(seed: int, made: list[Budget]) -> None:
    taken = []
    kept = []  # objects of each run, so that none of the next is where one of these was
    for _ in range(3):
        answers.forget()
        made.clear()
        kept += [checked(kernel(seed), 600_000), [Unknown("u", 0, 1, 0) for _ in range(997)]]
        taken.append([budget.spent() for budget in made])
    assert taken[0] == taken[1] == taken[2]


def test_an_answer_that_is_kept_is_of_its_own_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where others were forgotten between the question and its answer."""
    monkeypatch.setattr(answers, "_KEPT", 1)
    answers.forget()
    x = variable(Unknown("x", -100, 100, 0))
    for _ in range(2):
        for least in range(8):
            question_asked = [at_least(x, least)]
            expected = least % 3 == 1
            assert answers.remembered(lambda _, found=expected: found, question_asked) is expected
    answers.forget()


def test_an_access_that_took_too_many_steps_says_so() -> None:
    text = (
        "#[kernel]\n"
        "pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: usize) {\n"
        "let a = n * 3 / 2 % 97; let b = (a * 5 + 1) / 3 % 98; z.store(x.load::<64>([b]));\n}\n"
    )
    [report] = checked(text, 1_000).reports
    facts = [fact for access in report.accesses for fact in access.facts]
    assert any("--proof-budget" in fact for fact in facts)


def test_a_race_that_took_too_many_steps_is_refused_with_a_way_out() -> None:
    text = MANY_STORES.format(grid="G", stores="z.store::<1>([p / 3 * 3 + p % 3], 0.0);\n")
    [found] = checked(text, 500).diagnostics
    assert found.code == "E0501"
    assert any("--proof-budget" in note for note in found.notes)
    assert not checked(text).diagnostics


@pytest.mark.parametrize(("grid", "index"), [("1", "{i}"), ("G", "p * 200 + {i}")])
def test_many_stores_of_one_program_take_few_steps(grid: str, index: str) -> None:
    store = "z.store_at::<1>([" + index + "], Tile::<f32, 1>::ones());\n"
    stores = "".join(store.format(i=i) for i in range(200))
    assert not checked(MANY_STORES.format(grid=grid, stores=stores), 400_000).diagnostics


def test_one_of_many_stores_that_meets_another_program_is_found() -> None:
    store = "z.store_at::<1>([p * 20 + {i}], Tile::<f32, 1>::ones());\n"
    stores = "".join(store.format(i=i) for i in (*range(19), 20))
    [found] = checked(MANY_STORES.format(grid="G", stores=stores)).diagnostics
    assert found.code == "E0501"
    assert found.message == "two programs may write the same element of `z`"


def test_nested_loops_do_not_double_with_each_level() -> None:
    levels = 12
    loops = "".join(f"for i{i} in 0..N {{\n" for i in range(levels)) + "q += 1;\n" + "}" * levels
    stores = f"let mut q = 0;\n{loops}\nz.store::<1>([p], 0.0);\n"
    assert not checked(MANY_STORES.format(grid="G", stores=stores), 1_000_000).diagnostics


def test_least_values_are_least() -> None:
    x, y = (Unknown(name, 0, 1000, number) for number, name in enumerate("xy"))
    product = variable(x) * variable(y)
    asked = [equal(product, 35), less(variable(x), variable(y)), at_least(variable(x), 2)]
    found = smallest(asked, [x, y])
    assert found is not None and (found[x], found[y]) == (5, 7)
    assert not can_hold([*asked, less(variable(x), 5)])


@pytest.mark.parametrize(
    "stated",
    [
        "requires!(j >= 1); requires!(N % (2 * j) == 0);",
        "requires!(N % (2 * j) == 0); requires!(j >= 1);",
    ],
)
def test_products_leave_a_part_of_the_budget(stated: str) -> None:
    text = (
        "#[kernel(grid = [N / 2])]\n"
        f"pub fn k<N: Dim>(x: &mut Tensor<f32, N>, j: usize) {{ {stated}\n"
        "let [p, _, _] = program_id(); let i = 2 * j * (p / j) + p % j;\n"
        "let a = x.load_at::<1>([i]); let b = x.load_at::<1>([i + j]);\n"
        "x.store_at::<1>([i], a.min(b)); x.store_at::<1>([i + j], a.max(b));\n}\n"
    )
    assert not checked(text, DEFAULT_PROOF_BUDGET * 7 // 10).diagnostics


def test_conditions_made_of_conditions_do_not_double() -> None:
    condition = "n > 1"
    for number in range(24):
        condition = f"if {condition} {{ n > {number} }} else {{ n < {number} }}"
    stores = f"let q = if {condition} {{ 1 }} else {{ 0 }}; z.store::<1>([p * 2 + q], 0.0);\n"
    text = MANY_STORES.format(grid="G", stores=stores).replace(
        "g: &Tensor<f32, G>)", "g: &Tensor<f32, G>, n: usize)"
    )
    assert not checked(text).diagnostics


def test_many_branches_in_a_row_are_decided() -> None:
    branches = "".join(
        f"else if n == {number} {{ q = {number % 2}; }}\n" for number in range(1, 100)
    )
    stores = f"let mut q = 0; if n == 0 {{ q = 1; }} {branches} z.store::<1>([p * 2 + q], 0.0);\n"
    text = MANY_STORES.format(grid="G", stores=stores).replace(
        "g: &Tensor<f32, G>)", "g: &Tensor<f32, G>, n: usize)"
    )
    assert not checked(text, 2_000_000).diagnostics


def test_a_division_where_nothing_is_executed_is_no_fault() -> None:
    text = (
        "#[kernel(grid = [G])]\n"
        "pub fn k<N: Dim, G: Dim>(z: &mut Tensor<f32, N>, g: &Tensor<f32, G>, n: usize) {\n"
        "requires!(n == 3); requires!(n == 16); requires!(n > G);\n"
        "let [p, _, _] = program_id();\n"
        "for k in 0..n % 100 { let d = (k as i32) % 5 - (p as i32);\n"
        "let q = (p as i32 / 4).rem_euclid(97) / d;\n"
        "z.store_at::<1>([(p as i32) * 4 + q], Tile::<f32, 1>::ones()); }\n}\n"
    )
    assert "E0604" in {found.code for found in checked(text).diagnostics}
