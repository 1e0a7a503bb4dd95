"""The claims ledger: passages of the paper in its own words, and what is found about each.

A passage is quoted from the source of the paper. Its claims are judged by a function of the evidence, which returns
for each the measure, the numbers and the verdict; nothing here says in advance what a verdict will be.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bilevel_book.ledger import counts, lemmas, rates, runs
from bilevel_book.ledger.evidence import Evidence, Judge, several, undecidable
from bilevel_book.theory import statements
from bilevel_book.verdicts import Claim, Verdict

SECTIONS = ("Abstract", "Introduction", "Table 1", "Contributions", "Algorithms", "Main results", "Experiments")


@dataclass(frozen=True)
class Passage:
    """A sentence of the paper, or the part of it that can be checked, and who checks it."""

    section: str  # one of SECTIONS
    where: str
    quote: str
    judge: Judge
    chapters: tuple[int, ...] = ()
    tests: tuple[str, ...] = ()


def tally(ledger: list[tuple[Passage, list[Claim]]]) -> dict[Verdict, int]:
    """How many different claims have each verdict; what the paper says in several places is counted once."""
    verdicts = Counter(claim.verdict for claim in {claim for _, claims in ledger for claim in claims})
    return {verdict: verdicts[verdict] for verdict in Verdict}


def judge(evidence: Evidence) -> list[tuple[Passage, list[Claim]]]:
    """Every passage with its claims, in the order of the paper."""
    return [(passage, passage.judge(evidence)) for passage in PASSAGES]


PRIORITY = "a statement about what others had done by 2023, which no run decides"


def _passages() -> Iterator[Passage]:
    yield Passage(
        "Abstract",
        "Abstract",
        "features a simple fully single-loop structure, a projection-aided finite-difference Hessian/Jacobian-vector "
        "approximation, and momentum-based updates",
        several(counts.single_loop, counts.in_the_ball, counts.momentum_on_all),
        (7,),
        (
            "test_oracle_calls_of_a_step",
            "test_v_never_leaves_the_ball",
            "test_all_three_variables_move_from_the_time_t_point",
        ),
    )
    yield Passage(
        "Abstract",
        "Abstract",
        "without any second-order derivative computation",
        counts.first_order_only,
        (4, 7),
        ("test_oracle_calls_of_a_step", "test_finite_differences_are_differences_of_the_gradients"),
    )
    yield Passage(
        "Abstract",
        "Abstract",
        r"FdeHBO requires $\mathcal{O}(\epsilon^{-1.5})$ iterations (each using $\mathcal{O}(1)$ samples and only "
        r"first-order gradient information) to find an $\epsilon$-accurate stationary point",
        several(rates.has_rate("FdeHBO", 1.5, "iterations"), counts.few_samples),
        (13, 14),
        ("test_independent_draws_cost_samples_and_nothing_else", "test_the_sum_of_alpha_cubed_is_at_most_a_logarithm"),
    )
    yield Passage(
        "Abstract",
        "Abstract",
        r"this is the first Hessian/Jacobian-free method with an $\mathcal{O}(\epsilon^{-1.5})$ sample complexity",
        undecidable("FdeHBO is the first", PRIORITY),
    )
    yield Passage(
        "Introduction",
        "Section 1",
        r"have been shown to achieve an $\mathcal{O}(\epsilon^{-1.5})$ sample complexity, but with expensive "
        r"evaluations "
        "of Hessian/Jacobian matrices or Hessian/Jacobian-vector products",
        counts.others_need_products,
        (8,),
        ("test_oracle_calls_of_a_step_are_the_formula",),
    )
    yield Passage(
        "Introduction",
        "Section 1",
        "can vanish the hypergradient for bilevel problems with single-variable upper-level function",
        runs.without_second_order_nothing_moves,
        (1, 10),
        ("test_the_control_stands_still_when_f_depends_on_y_alone", "test_the_upper_loss_does_not_know_lambda"),
    )
    yield Passage(
        "Introduction",
        "Section 1",
        r"which achieves a high sample complexity of $\mathcal{O}(p^2\epsilon^{-2})$",
        rates.contradicts_table,
        (8,),
        ("test_the_table_of_the_paper_agrees_with_itself",),
    )
    yield Passage(
        "Introduction",
        "Section 1",
        r"which achieves sample complexities of $\mathcal{O}(\epsilon^{-3.5})$ and $\mathcal{O}(\epsilon^{-2.5})$, "
        "respectively",
        several(rates.has_rate("F2SA", 3.5), rates.has_rate("F3SA", 2.5)),
        (14,),
    )
    yield Passage(
        "Introduction",
        "Section 1.2",
        "can be sensitive to the selection of the smoothing constant, and may suffer from some numerical issues in "
        "practice",
        several(lemmas.rounding_matters, runs.sensitive_to_delta),
        (4, 9),
        ("test_rounding_error_has_slope_minus_one_in_delta", "test_truncation_error_has_slope_two_in_delta"),
    )
    rows = {
        "PZOBO-S": r"PZOBO-S | $ \mathcal{\widetilde O}(p^2\epsilon^{-3})$ | $\mathcal{O}(\epsilon^{-1})$ | "
        r"$\mathcal{\widetilde O}(p^2\epsilon^{-2})$ | 2",
        "F2SA": r"F$^2$SA | $ \mathcal{\widetilde O}(\epsilon^{-3.5})$ | $\mathcal{O}(1)$ | "
        r"$ \mathcal{\widetilde O}(\epsilon^{-3.5})$ | 1",
        "F3SA": r"F$^3$SA | $ \mathcal{\widetilde O}(\epsilon^{-2.5})$ | $\mathcal{O}(1)$ | "
        r"$ \mathcal{\widetilde O}(\epsilon^{-2.5})$ | 1",
        "FdeHBO": r"FdeHBO (this paper) | $\mathcal{\widetilde O}(\epsilon^{-1.5})$ | $\mathcal{O}(1)$ | "
        r"$\mathcal{\widetilde O}(\epsilon^{-1.5})$ | 1",
    }
    for name, quote in rows.items():
        yield Passage(
            "Table 1",
            "Table 1: samples | batch size | iterations | loops",
            quote,
            rates.row_of_table(name),
            (8, 14),
            ("test_oracle_calls_of_a_step_are_the_formula", "test_oracle_calls_of_a_step"),
        )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "FdeHBO takes the fully single-loop structure with momentum-based updates on three variables $y,v$ and $x$",
        several(counts.single_loop, counts.momentum_on_all),
        (6, 7),
        ("test_the_paths_are_those_of_the_corrected_algorithms",),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "FdeHBO contains only a single matrix-vector product at each iteration",
        counts.one_product("FdeHBO"),
        (7,),
        ("test_oracle_calls_of_a_step",),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "to ensure the boundedness of the Hessian-vector approximation error, the variance on momentum-based iterates, "
        "and the smoothness of the LS loss function",
        lemmas.the_ball_bounds,
        (5, 12),
        (
            "test_central_differences_err_by_half_the_lipschitz_constant_of_the_second_derivative",
            "test_the_variance_of_the_hypergradient_estimate_is_bounded_while_v_is_in_the_ball",
            "test_the_surrogate_is_lipschitz_while_v_is_in_the_ball",
        ),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "both of which outperforms existing results by a large margin",
        rates.margin,
        (14,),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "the auxiliary projection can provide more accurate iterates on $v$ in solving the LS problem without "
        "affecting the overall convergence behavior",
        several(lemmas.projection_helps, runs.ball_does_no_harm),
        (5, 10),
        (
            "test_projection_brings_v_closer_to_every_point_of_the_ball",
            "test_projection_may_lead_away_from_a_point_outside_the_ball",
        ),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "the finite-different approximations make the unbiased assumptions in the momentum-based gradients no longer "
        "hold",
        lemmas.biased("vx"),
        (4, 13),
        ("test_measured_against_the_true_direction_the_bias_shows",),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        r"Differently from existing momentum-based bilevel methods with $\mathcal{O}(\log\frac{1}{\epsilon})$ "
        "Hessian-vector evaluations per iteration, FMBO contains only a single Hessian-vector computation per "
        "iteration "
        r"with the same $\mathcal{O}(\epsilon^{-1.5})$ sample complexity",
        several(counts.others_have_a_subloop, counts.one_product("FMBO"), rates.has_rate("FMBO", 1.5)),
        (7, 8, 14),
        ("test_oracle_calls_of_a_step", "test_oracle_calls_of_a_step_are_the_formula"),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "the stochastic gradients in all three updates on $y,v,x$ are no longer unbiased",
        lemmas.biased("yvx"),
        (4,),
        ("test_measured_against_the_true_direction_the_bias_shows",),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        "often assume that the iterates on $v$ are bounded during the process. We do not require such assumptions.",
        runs.v_needs_no_assumption,
        (5, 10),
        ("test_v_never_leaves_the_ball",),
    )
    yield Passage(
        "Contributions",
        "Section 1.1",
        r"an $\mathcal{O}(\epsilon^{-1.5})$ complexity has not been established for fully single-loop bilevel "
        r"algorithms "
        "yet",
        undecidable("no fully single-loop method had this complexity", PRIORITY),
    )
    yield Passage(
        "Algorithms",
        "Section 2.2",
        "if the iterative $v_t$ is unbounded, the approximation error between",
        lemmas.large_v_large_error,
        (4, 5),
        ("test_at_a_kink_the_bound_on_the_error_is_attained",),
    )
    yield Passage(
        "Algorithms",
        "Section 2.2",
        r"the bound of this gap relies on $\|v_t\|$ and $\delta$ but it is independent of the dimension of $y_t$",
        lemmas.no_dimension,
        (12,),
        ("test_central_differences_err_by_half_the_lipschitz_constant_of_the_second_derivative",),
    )
    yield Passage(
        "Algorithms",
        "Section 2.2",
        "under a proper choice of the radius $r_v$, this auxiliary projection provides a better per-step progress",
        lemmas.projection_helps,
        (5,),
        ("test_projection_brings_v_closer_to_every_point_of_the_ball",),
    )
    yield Passage(
        "Main results",
        "Proposition 1, `prop:HFetf`",
        "indicates the per-iteration improvement induced by the momentum-based update",
        lemmas.momentum_errors(
            "Proposition 1", statements.upper_error_free, "the error of the hypergradient estimate shrinks as said"
        ),
        (12,),
        ("test_with_finite_differences_the_errors_shrink_up_to_terms_in_delta",),
    )
    yield Passage(
        "Main results",
        "Proposition 2, `prop:hfetR`",
        "contains an iteratively improved error component",
        lemmas.momentum_errors(
            "Proposition 2",
            statements.helper_error_free_as_printed,
            "the error of the linear-system estimate shrinks as said",
        ),
        (12,),
        ("test_with_finite_differences_the_errors_shrink_up_to_terms_in_delta",),
    )
    yield Passage(
        "Main results",
        "Proposition 3, `prop:hessian_free_v`",
        r"$$\Big(1-2\lambda_t\frac{(L_g+L_g^3)\mu_g}{\mu_g + L_g} + \lambda_t^2L_g^2\Big)\mathbb{E}\|v_t - v^*_t\|^2$$",
        lemmas.contraction,
        (3, 12),
        (
            "test_the_printed_contraction_factor_is_below_the_true_one",
            "test_the_descent_of_v_fails_as_printed_and_holds_as_corrected",
        ),
    )
    yield Passage(
        "Main results",
        "Theorem 1, `th:hessianfree`",
        r"Choose $r_v \geq \frac{C_{f_y}}{\mu_g}$",
        lemmas.radius,
        (5, 12),
        ("test_with_the_printed_radius_fmbo_stops_where_the_hypergradient_is_not_zero",),
    )
    yield Passage(
        "Main results",
        "Theorem 1, `th:hessianfree`",
        r"$\delta_{\epsilon} \leq \frac{\min\{c_{\eta_f},c_{\eta_R}\}}{8(L_{g_{xy}}r_v^2(w+T-1)^{2/3})}$",
        lemmas.delta_condition,
        (12, 13),
        (
            "test_without_L_gyy_the_condition_on_delta_is_empty_when_the_jacobian_is_constant",
            "test_fdehbo_with_a_delta_that_the_print_allows_ends_at_the_wrong_place",
        ),
    )
    yield Passage(
        "Main results",
        "Theorem 1, `th:hessianfree`",
        r"where the constants $w$, $c_\beta,c_\lambda,c_{\eta_f},c_{\eta_R}$ and  $c_{\eta_g}$ are defined in",
        lemmas.constants_close("FdeHBO"),
        (13,),
        (
            "test_no_coefficient_is_positive_with_the_corrected_constants",
            "test_the_potential_rises_where_the_printed_lemma_says_that_it_falls",
        ),
    )
    yield Passage(
        "Main results",
        "Corollary 1, `co:hftribo`",
        r"FdeHBO requires $\mathcal{\widetilde O}(\epsilon^{-1.5})$ samples and gradient evaluations, respectively",
        several(rates.has_rate("FdeHBO", 1.5), counts.few_samples),
        (13, 14),
        ("test_oracle_calls_of_a_step",),
    )
    yield Passage(
        "Main results",
        "Theorem 2, `th:main`",
        r"the proposed fully single-loop FMBO achieves a convergence rate of $\frac{1}{T^{2/3}}$",
        several(lemmas.constants_close("FMBO"), rates.has_rate("FMBO", 1.5, "iterations")),
        (13, 14),
        ("test_no_coefficient_is_positive_with_the_corrected_constants",),
    )
    yield Passage(
        "Main results",
        "after Corollary 2",
        "each iteration of FMBO contains only one Hessian-vector computation due to the simple fully single-loop "
        r"implementation, whereas other momentum-based approaches require $\mathcal{O}(\log\frac{1}{\epsilon})$ "
        "Hessian-vector computations in a nested manner per iteration",
        several(counts.one_product("FMBO"), counts.others_have_a_subloop),
        (7, 8),
        ("test_oracle_calls_of_a_step",),
    )
    yield Passage(
        "Main results",
        "after Corollary 2",
        r"FMBO is the first fully single-loop bilevel optimizer that achieves the $\mathcal{\widetilde "
        r"O}(\epsilon^{-1.5})$ "
        "sample complexity",
        undecidable("FMBO is the first", PRIORITY),
    )
    yield Passage(
        "Experiments",
        "Section 4.1, Figure 1",
        "our FdeHBO converges much faster and more stably than PZOBO-S, F$^2$SA and F$^3$SA, while achieving a higher "
        "training accuracy. This is consistent with our theoretical results, and validates the momentum-based "
        "approaches in reducing the variance during the entire training.",
        runs.of_experiment("hyper-representation"),
        (9,),
        (
            "test_what_chapter_9_says_of_the_stored_runs",
            "test_every_run_of_the_full_size_is_stored_with_these_settings",
        ),
    )
    yield Passage(
        "Experiments",
        "Appendix, hyper-representation",
        r"We take the last two layers as the lower-level parameters $w$, and all remaining layers as the upper-level "
        r"parameters $\lambda$. In our experiments, the dimension of $w$ is 850, and the dimension of $\lambda$ is "
        r"60856.",
        runs.dimensions,
        (9,),
        ("test_lenet_has_the_dimensions_of_the_paper",),
    )
    yield Passage(
        "Experiments",
        "Section 4.2, Figure 2",
        "FMBO, stocBiO and AID-FP converge much faster and more stable than other algorithms. Compared to stocBiO and "
        "AID-FP, FMBO achieves a lower training loss. This demonstrates the effectiveness of momentum-based variance "
        "reduction in finding more accurate iterates. [...] FMBO converges faster than existing fully single-loop "
        "FSLA and SOBA algorithms with a lower training loss. [...] is not included in the figures because it "
        "performs similarly to stocBiO",
        runs.of_experiment("hyper-cleaning"),
        (10,),
        ("test_every_run_of_the_full_size_is_stored_with_these_settings",),
    )
    yield Passage(
        "Experiments",
        "Appendix, data hyper-cleaning",
        r"We also use a decaying $\eta$ for more stable training.",
        runs.decay_is_stable,
        (6, 10),
        ("test_a_constant_eta_leaves_its_share_of_the_variance",),
    )
    yield Passage(
        "Experiments",
        "Section 5",
        "Our experiments validate the theoretical results",
        undecidable(
            "the experiments validate the theory",
            "the lower level of the first is not strongly convex, so that no theorem speaks of it, and the constants "
            "of the theorems are far from those of any run; the two can agree, but neither tests the other",
        ),
        (9, 13),
        ("test_for_unit_constants_the_theorem_says_nothing_before_1e20_steps",),
    )


PASSAGES = tuple(_passages())
