"""All tasks by name, in the order of the paper's tables."""

from prlstm.tasks.check import read_name
from prlstm.tasks.cs.binary_addition import BinaryAddition
from prlstm.tasks.cs.binary_multiplication import BinaryMultiplication
from prlstm.tasks.cs.bucket_sort import BucketSort
from prlstm.tasks.cs.compute_sqrt import ComputeSqrt
from prlstm.tasks.cs.duplicate_string import DuplicateString
from prlstm.tasks.cs.missing_duplicate_string import MissingDuplicateString
from prlstm.tasks.cs.odds_first import OddsFirst
from prlstm.tasks.dcf.modular_arithmetic_brackets import ModularArithmeticBrackets
from prlstm.tasks.dcf.reverse_string import ReverseString
from prlstm.tasks.dcf.solve_equation import SolveEquation
from prlstm.tasks.dcf.stack_manipulation import StackManipulation
from prlstm.tasks.regular.cycle_navigation import CycleNavigation
from prlstm.tasks.regular.even_pairs import EvenPairs
from prlstm.tasks.regular.modular_arithmetic import ModularArithmetic
from prlstm.tasks.regular.parity_check import ParityCheck
from prlstm.tasks.task import Task
from prlstm.tasks.verify import verify

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        EvenPairs(),
        ModularArithmetic(),
        ParityCheck(),
        CycleNavigation(),
        StackManipulation(),
        ReverseString(),
        ModularArithmeticBrackets(),
        SolveEquation(),
        DuplicateString(),
        MissingDuplicateString(),
        OddsFirst(),
        BinaryAddition(),
        BinaryMultiplication(),
        ComputeSqrt(),
        BucketSort(),
    )
}


def names() -> list[str]:
    """The names of all tasks."""
    return list(TASKS)


def get(name: str) -> Task:
    """The task of a name."""
    return TASKS[read_name(name, TASKS, "task")]


def register(task: Task) -> Task:
    """Add a task of your own: from then on its name stands for it.

    Its parts are held against each other first (`verify`).
    """
    if not isinstance(task, Task):
        raise TypeError(f"task={task!r}: expected an instance of a subclass of prlstm.tasks.Task")
    other = TASKS.get(getattr(task, "name", ""), task)
    # the same class defined once more, as in a notebook, is the same task
    if type(other).__qualname__ != type(task).__qualname__:
        raise ValueError(f"name={task.name!r}: another task has this name")
    verify(task)
    TASKS[task.name] = task
    return task
