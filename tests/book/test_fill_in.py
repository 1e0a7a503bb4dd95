"""What the check of a fill-in task says."""

import pytest
import torch

from bilevel_book.fill_in import check

RIGHT = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("yours", "said"),
    [
        (..., "To do: replace the dots above and run this cell again."),
        ([1, 2, 3 + 1e-7], "Right."),
        (-RIGHT, "Not yet: the size is right, the sign is wrong."),
        (2 * RIGHT, "Not yet: yours is 2 times what it should be."),
        (RIGHT[:2], "Not yet: expected the shape (3,), got (2,)."),
        (RIGHT + torch.tensor([0, 0, 0.5]), "Not yet: off by 0.5 at entry 2, got 3.5 instead of 3."),
        (RIGHT * torch.nan, "Not yet: off by nan at entry 0, got nan instead of 1."),
        ("text", "Not yet: expected a number or a tensor, got 'text'."),
    ],
)
def test_the_check_says_what_is_off(capsys, yours, said):
    check(yours, RIGHT)
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(("yours", "said"), [(2.0, "Right."), (1.9, "Not yet: off by 0.1, got 1.9 instead of 2.")])
def test_a_number_may_stand_for_a_tensor_with_one_entry(capsys, yours, said):
    check(yours, torch.tensor([2.0]))
    assert capsys.readouterr().out == f"{said}\n"
