"""All numbered statements of the paper: their status, and the functions and tests for each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One numbered statement of the paper: what it is for, whether it holds, and where that is checked."""

    label: str  # in the paper
    name: str
    status: str  # "as printed": true; "typo": true up to a slip of the pen; "corrected": false or unproved as printed
    purpose: str
    idea: str  # of the proof
    finding: str  # what is wrong with the print, or how sharp it is
    functions: tuple[str, ...]  # the (corrected) statement, in bilevel_book.theory
    tests: tuple[str, ...]
    as_printed: tuple[str, ...] = ()  # the printed statement, where it is another one


def _statement(label, name, status, purpose, idea, finding, functions="", tests="", as_printed=""):
    """Names of functions and tests, separated by blanks; functions are of statements.py unless they say otherwise."""

    def of_module(names: str) -> tuple[str, ...]:
        return tuple(name if "." in name else f"statements.{name}" for name in names.split())

    paths = tuple(f"theory/{test}" for test in tests.split())
    return Statement(label, name, status, purpose, idea, finding, of_module(functions), paths, of_module(as_printed))


_CE = "test_counterexamples.py::test_"
_LM = "test_lemmas.py::test_"
_EST = "test_estimators.py::test_"
_SUR = "test_surrogate.py::test_"
_CON = "test_constants.py::test_"
_SUM = "test_sums.py::test_"

_V_TESTS = f"""{_LM}a_step_on_the_linear_system_contracts {_LM}co_coercivity_and_the_step_it_gives
    {_LM}v_star_is_lipschitz {_LM}v_comes_closer_to_its_moving_target_for_all_weights
    {_CE}the_printed_contraction_factor_is_below_the_true_one {_CE}the_step_before_it_is_wrong_too
    {_CE}the_descent_of_v_fails_as_printed_and_holds_as_corrected"""
_V_FUNCTIONS = "helper_descent contraction contraction_simple contraction_step cocoercivity projection"
_V_IDEA = (
    "Young's inequality splits the new distance into three: the gradient step contracts, projection only helps because "
    "v* is in the ball, the error of the estimate enters squared, and v* itself moves little."
)
_V_FINDING = (
    "The factor 1 - 2 lam (L + L^3) mu / (mu + L) + lam^2 L^2 is too small as soon as L^3 > mu: for mu = 1, L = 10, "
    "lam = 0.01 it is -0.83 where 0.98 is true. Right is (1 - lam mu)^2 for lam <= 2 / (mu + L), which gives the "
    "1 - 2 lam mu L / (mu + L) that the rest of the proof uses. It holds for all gamma, delta > 0, not for some."
)
_MERGE_TESTS = f"""{_CON}no_coefficient_is_positive_with_the_corrected_constants
    {_CON}the_coefficient_of_v_is_exactly_2C_for_every_large_printed_c_lam
    {_CON}the_potential_rises_where_the_printed_lemma_says_that_it_falls"""
_MERGE_IDEA = (
    "Multiply the six descent inequalities by the weights of the potential and add: the constants are chosen so that "
    "no square is left with a positive coefficient."
)
_MERGE_FINDING = (
    "With the printed constants the coefficient of ||v - v*||^2 is +2 C_gxy, not 0, and the price of ||y - y*||^2 is "
    "too low; the potential rises in a noiseless example. K_2 twice as large, K_1 built with Lam, and conditions on w "
    "that keep eta <= 1 and lam <= 1 / (mu + L) repair it."
)

STATEMENTS = [
    _statement(
        "lm:boundofv",
        "v* is bounded",
        "as printed",
        "Tells how large the ball must be so that projection never cuts off the solution of the linear system.",
        "The inverse of H shrinks every vector by at least 1 / mu.",
        "True and sharp; but the theorems use it without the root, r_v >= C_fy / mu.",
        "bound_of_v",
        f"{_LM}v_star_lies_in_the_ball_of_radius_root_of_C_fy_over_mu",
    ),
    _statement(
        "lm:boundofgradf",
        "The surrogate d_x is Lipschitz",
        "as printed",
        "Recursive momentum works only if a direction changes little when the point moves little.",
        "J is multiplied by v, so the constant contains ||v|| <= r_v: here the projection is needed.",
        "True for every sample, and with the same constant when J v is a central difference.",
        "surrogate_moves",
        f"""{_LM}the_surrogate_is_lipschitz_while_v_is_in_the_ball
        {_SUR}the_hypergradient_through_differences_is_lipschitz_with_the_same_constant""",
    ),
    _statement(
        "lm:B",
        "The estimate of d_x is unbiased, its variance bounded",
        "as printed",
        "The noise that momentum has to average away.",
        "Split f and J v; J is multiplied by v, which is in the ball.",
        "True; one line of the proof prints grad_y g for the Jacobian.",
        "surrogate_variance",
        f"""{_EST}the_variance_of_the_hypergradient_estimate_is_bounded_while_v_is_in_the_ball
        {_EST}without_averaging_the_past_the_new_error_is_the_plain_variance""",
    ),
    _statement(
        "lm:3ieq",
        "Three Lipschitz inequalities",
        "corrected",
        "Errors of y become errors of the hypergradient, y* follows x, and Phi is smooth.",
        "Implicit differentiation: grad y* = -H^-1 J', and every factor is bounded and Lipschitz.",
        "C_gxy bounds a square, so the constants need its root; C_y is not defined (read sqrt(C_fy)); and the first "
        "inequality holds at v = v*(x, y) only, not for every v.",
        "surrogate_error y_star_moves hypergradient_moves",
        f"""{_LM}the_three_inequalities_hold_with_roots_and_at_v_star
        {_CE}the_first_inequality_fails_without_the_root_even_at_v_star
        {_CE}the_first_inequality_fails_for_a_v_that_is_not_v_star
        {_CE}the_second_inequality_fails_without_the_root {_CE}the_third_inequality_fails_without_the_root""",
        "surrogate_error_as_printed y_star_moves_as_printed hypergradient_moves_as_printed",
    ),
    _statement(
        "lm:boundofeJH",
        "Central differences are close to products",
        "as printed",
        "How far H v and J v are from what two gradients show.",
        "The difference quotient is the average of H over the segment y +- delta v.",
        "True, twice larger than necessary: L delta ||v||^2 / 2 is right and attained at a kink; with bounded fourth "
        "derivatives the error is of order delta^2. It needs smoothness of every sample.",
        "hessian_difference jacobian_difference hessian_difference_smooth jacobian_difference_smooth",
        f"""{_LM}central_differences_err_by_half_the_lipschitz_constant_of_the_second_derivative
        {_LM}at_a_kink_the_bound_on_the_error_is_attained {_LM}for_a_smooth_loss_the_error_has_slope_two
        {_EST}the_same_sample_at_both_signs_keeps_the_variance_independent_of_delta""",
        "hessian_difference_as_printed jacobian_difference_as_printed",
    ),
    _statement(
        "lm:corefunction",
        "Descent of the objective (FMBO)",
        "corrected",
        "One step lowers Phi, up to the errors of the estimate, of y and of v.",
        "Phi is L_f-smooth; then h^f - grad Phi is split into the error of h^f, that of v and that of y.",
        "v*(x, y) is used where the hypergradient has v*(x, y*): the way between them is lost. The price of "
        "||y - y*||^2 is 2 Lam^2, not 4 (L_fx^2 + C_fy L_gxy^2 / mu^2).",
        "function_descent",
        f"""{_LM}the_objective_descends_up_to_the_errors_of_x_y_and_v
        {_CE}the_function_lemma_fails_when_y_is_wrong_and_v_follows_it""",
        "function_descent_as_printed",
    ),
    _statement(
        "lm:yy",
        "Descent of y (FMBO)",
        "as printed",
        "y comes closer to its target y*(x), which moves with x.",
        "A gradient step contracts by co-coercivity; Young's inequality pays for the error and for the moving target.",
        "True for all gamma, delta > 0 and every beta; the print says for some.",
        "lower_descent",
        f"{_LM}y_comes_closer_to_its_moving_target_for_all_weights",
    ),
    _statement(
        "lm:errorf",
        "Momentum error of h^f (FMBO)",
        "as printed",
        "The error of the hypergradient estimate shrinks by (1 - eta)^2 and gains eta^2 noise plus the moves.",
        "New noise is uncorrelated with the old error; the difference of two directions on one sample is Lipschitz.",
        "True as printed.",
        "upper_error momentum_sharp",
        f"""{_EST}the_error_of_the_hypergradient_estimate_shrinks
        {_EST}all_three_errors_shrink_with_smaller_constants_than_printed
        {_EST}at_rest_the_squared_error_is_a_weighted_sum_of_the_old_one_and_the_noise""",
    ),
    _statement(
        "lm:errorg",
        "Momentum error of h^g (FMBO)",
        "corrected",
        "The same for the gradient of the lower level.",
        "As lm:errorf; the last line of the printed proof is right.",
        "In the statement the first term is multiplied by E ||e||^2 once too often. Its constant 16 may be 2.",
        "lower_error momentum_sharp",
        f"""{_EST}the_error_of_the_lower_gradient_estimate_shrinks
        {_EST}all_three_errors_shrink_with_smaller_constants_than_printed
        {_CE}the_stray_square_in_the_lower_error_makes_it_false""",
        "lower_error_as_printed",
    ),
    _statement(
        "lm:errorR",
        "Momentum error of h^R (FMBO)",
        "as printed",
        "The same for the gradient of the linear system.",
        "As lm:errorf; H is multiplied by v, which is in the ball.",
        "True; the proof should condition on all samples so far, not on the iterates, which forget w when projected.",
        "helper_error momentum_sharp",
        f"""{_EST}the_error_of_the_linear_system_estimate_shrinks
        {_EST}all_three_errors_shrink_with_smaller_constants_than_printed""",
    ),
    _statement(
        "lm:vv",
        "Descent of v (FMBO)",
        "corrected",
        "v comes closer to its target v*(x, y), which moves with x and y.",
        _V_IDEA,
        _V_FINDING,
        _V_FUNCTIONS,
        _V_TESTS,
        "helper_descent_as_printed contraction_as_printed contraction_step_as_printed",
    ),
    _statement(
        "lm:mergeV",
        "The potential descends (FMBO)",
        "corrected",
        "All errors together fall by alpha / 2 ||grad Phi||^2 in each step, up to noise.",
        _MERGE_IDEA,
        _MERGE_FINDING,
        "constants.corrected constants.coefficients",
        _MERGE_TESTS,
        "constants.printed",
    ),
    _statement(
        "th:main",
        "FMBO converges at the rate T^-2/3",
        "corrected",
        "The mean of E ||grad Phi||^2 over T steps is of order T^-2/3, up to a logarithm.",
        "Sum the descent of the potential; the noise adds up to the sum of alpha^3, a logarithm.",
        "The rate survives. r_v >= C_fy / mu must be sqrt(C_fy) / mu, or the method may stop at a wrong point; the "
        "constants are those of the corrected lm:mergeV; inf Phi > -inf and eta_0 = 1 must be assumed. For constants "
        "of size one the bound says nothing at any T that can be run.",
        "bound_of_v constants.bound",
        f"""{_CE}with_the_printed_radius_fmbo_stops_where_the_hypergradient_is_not_zero
        {_SUM}the_sum_of_alpha_cubed_is_at_most_a_logarithm
        {_CON}for_unit_constants_the_theorem_says_nothing_before_1e20_steps""",
        "radius_as_printed",
    ),
    _statement(
        "Co:complexitytribo",
        "FMBO needs about eps^-1.5 samples",
        "as printed",
        "How many samples make E ||grad Phi||^2 <= eps.",
        "T^-2/3 = eps, a fixed number of samples in each step.",
        "Follows from the corrected theorem, with the logarithm that the abstract leaves out; each step takes two "
        "products H v, not one.",
    ),
    _statement(
        "prop:HFetf",
        "Momentum error of h^f (FdeHBO)",
        "typo",
        "The error of the hypergradient estimate, now made of finite differences.",
        "As lm:errorf; the bias of the differences is carried along and bounded by lm:boundofeJH.",
        "True with e^f = h^f - d_x as in the appendix; the Delta in the definition in the text is not defined. Adding "
        "1 to a squared error is what makes delta so small later.",
        "upper_error_free momentum_sharp",
        f"{_EST}with_finite_differences_the_errors_shrink_up_to_terms_in_delta",
    ),
    _statement(
        "prop:hfetR",
        "Momentum error of h^R (FdeHBO)",
        "typo",
        "The error of the linear-system estimate, now made of finite differences.",
        "As lm:errorR, with the bias bounded by lm:boundofeJH.",
        "L^4 lam^2 has wrong units where L^2 lam^2 is right; true nevertheless, since the term is counted twice.",
        "helper_error_free momentum_sharp",
        f"{_EST}with_finite_differences_the_errors_shrink_up_to_terms_in_delta",
        "helper_error_free_as_printed",
    ),
    _statement(
        "prop:hessian_free_v",
        "Descent of v (FdeHBO)",
        "corrected",
        "v comes closer to v*(x, y) though H v is only seen through differences.",
        _V_IDEA,
        _V_FINDING + " C_fy^2 must be C_fy: the printed bound is too small when C_fy < 1.",
        _V_FUNCTIONS + " v_star_moves v_star_moves_squared",
        f"{_V_TESTS} {_CE}with_the_square_of_C_fy_the_solution_moves_faster_than_allowed",
        "helper_descent_free_as_printed contraction_as_printed v_star_moves_as_printed",
    ),
    _statement(
        "th:hessianfree",
        "FdeHBO converges at the rate T^-2/3",
        "corrected",
        "The same rate without any second derivative.",
        "As th:main, with terms in delta; better: finite differences are exact for another, equally convex problem.",
        "True with delta of order T^-1/3 by the second argument, so also with the printed T^-2/3; not by the printed "
        "proof, whose last term stays at 1/2. L_gyy is missing in the condition on delta, and r_v needs the root.",
        "delta_limit difference_margin surrogate_bias shift_of_v surrogate_monotone bound_of_v_delta momentum_sharp",
        f"""{_SUR}measured_against_their_own_mean_the_errors_shrink_with_no_term_in_delta
        {_SUR}delta_enters_only_as_a_bias_of_the_hypergradient
        {_SUR}the_surrogate_is_as_convex_and_as_smooth_as_the_linear_system
        {_CE}without_L_gyy_the_condition_on_delta_is_empty_when_the_jacobian_is_constant
        {_CE}fdehbo_with_a_delta_that_the_print_allows_ends_at_the_wrong_place
        {_SUM}with_the_delta_of_the_proof_the_printed_last_term_stays_at_one_half""",
        "delta_limit_as_printed radius_as_printed",
    ),
    _statement(
        "co:hftribo",
        "FdeHBO needs about eps^-1.5 samples",
        "as printed",
        "How many samples and gradients make E ||grad Phi||^2 <= eps.",
        "T^-2/3 = eps, a fixed number of gradients in each step.",
        "Follows from the corrected theorem, up to a logarithm.",
    ),
    _statement(
        "lm:corefunction_free",
        "Descent of the objective (FdeHBO)",
        "corrected",
        "One step lowers Phi, whatever the estimate h^f is made of.",
        "The same as lm:corefunction, which holds for any h^f.",
        "The same slip as in lm:corefunction.",
        "function_descent",
        f"""{_LM}the_objective_descends_up_to_the_errors_of_x_y_and_v
        {_CE}the_function_lemma_fails_when_y_is_wrong_and_v_follows_it""",
        "function_descent_as_printed",
    ),
    _statement(
        "lm:yy_free",
        "Descent of y (FdeHBO)",
        "as printed",
        "The lower level does not see the finite differences, only where they send x.",
        "The same as lm:yy.",
        "True for all gamma, delta > 0; the print says for some.",
        "lower_descent",
        f"{_LM}y_comes_closer_to_its_moving_target_for_all_weights",
    ),
    _statement(
        "lm:errorf_free",
        "Momentum error of h^f (FdeHBO), restated",
        "as printed",
        "prop:HFetf with its proof.",
        "The bias is correlated with the old error; Cauchy-Schwarz and ||e|| <= 1 + ||e||^2 deal with it.",
        "True. Measured against the mean of the differences the terms in delta disappear altogether.",
        "upper_error_free momentum_sharp",
        f"""{_EST}with_finite_differences_the_errors_shrink_up_to_terms_in_delta
        {_SUR}measured_against_their_own_mean_the_errors_shrink_with_no_term_in_delta""",
    ),
    _statement(
        "lm:errorg_free",
        "Momentum error of h^g (FdeHBO)",
        "corrected",
        "The same as lm:errorg: no differences here.",
        "The same as lm:errorg.",
        "The same stray E ||e||^2.",
        "lower_error",
        f"""{_EST}the_error_of_the_lower_gradient_estimate_shrinks
        {_CE}the_stray_square_in_the_lower_error_makes_it_false""",
        "lower_error_as_printed",
    ),
    _statement(
        "lm:errorR_free",
        "Momentum error of h^R (FdeHBO), restated",
        "typo",
        "prop:hfetR with its proof.",
        "As lm:errorf_free, for H v.",
        "True; the term of e^R is counted twice. Here L^2 is right where prop:hfetR prints L^4.",
        "helper_error_free momentum_sharp",
        f"""{_EST}with_finite_differences_the_errors_shrink_up_to_terms_in_delta
        {_SUR}measured_against_their_own_mean_the_errors_shrink_with_no_term_in_delta""",
    ),
    _statement(
        "lm:vv_free",
        "Descent of v (FdeHBO), restated",
        "corrected",
        "prop:hessian_free_v with its proof.",
        _V_IDEA,
        "The factor of lm:vv, and C_fy^2 for C_fy in the statement (the proof has C_fy).",
        _V_FUNCTIONS,
        f"{_V_TESTS} {_CE}with_the_square_of_C_fy_the_solution_moves_faster_than_allowed",
        "helper_descent_free_as_printed v_star_moves_as_printed",
    ),
    _statement(
        "lm:mergeV_free",
        "The potential descends (FdeHBO)",
        "corrected",
        "As lm:mergeV, with terms in delta.",
        _MERGE_IDEA,
        _MERGE_FINDING + " The condition on delta needs L_gyy.",
        "constants.corrected constants.coefficients delta_limit",
        f"{_MERGE_TESTS} {_CE}without_L_gyy_the_condition_on_delta_is_empty_when_the_jacobian_is_constant",
        "constants.printed delta_limit_as_printed",
    ),
]
