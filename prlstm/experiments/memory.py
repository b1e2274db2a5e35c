"""Which errors say that memory ran out."""

import torch

# how PyTorch says so on a CPU, and libraries on a GPU
WORDS = ("out of memory", "allocate memory", "alloc_failed", "invalid size")


def ran_out_of_memory(failed: BaseException) -> bool:
    """Whether an error is about memory."""
    if isinstance(failed, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(failed, RuntimeError) and any(w in str(failed).lower() for w in WORDS)


def said(failed: BaseException) -> str:
    """In a few words."""
    lines = str(failed).partition(". ")[0].splitlines()
    return f"not enough memory ({lines[0]})" if lines else "not enough memory"
