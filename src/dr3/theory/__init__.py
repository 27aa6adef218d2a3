"""The paper's theory as code: each function beside its equation. All of it computes inside `with float64():`."""

from dr3.instruments import Grams
from dr3.theory.covariance import (
    covariance_dense,
    covariance_doubling,
    covariance_steps,
    parameter_covariance,
    sample_covariance,
    sample_covariance_steps,
)
from dr3.theory.derivatives import (
    jacobians,
    pseudo_gradient,
    pseudo_hessian,
    pseudo_hessian_closed_form,
    pseudo_hessian_derivative,
    pseudo_hessian_derivative_closed_form,
    pseudo_hessian_product,
)
from dr3.theory.drift import Drift, mean_dot_product, mean_squared_norm, predicted_drift
from dr3.theory.grams import gram_matrices, grams_of
from dr3.theory.linear_td import FeatureVerdict, judge_features, linear_td, linear_td_far, outcome
from dr3.theory.noise import (
    given_noise,
    isotropic_noise,
    label_noise,
    noise_factor,
    noise_with_identity_covariance,
    parameter_noise,
    sgd_noise,
)
from dr3.theory.noisy_td import noisy_td, ornstein_uhlenbeck, paired_draws
from dr3.theory.null_spaces import inverse_of_K, null_space_bases, null_space_cosines, oblique_projector, project
from dr3.theory.problem import TDProblem, float64, td_problem
from dr3.theory.regularizer import (
    GradientTerms,
    delta_in_samples,
    dense_covariance,
    gradient_terms,
    gradient_terms_in_samples,
    identity_covariance,
    regularizer,
)
from dr3.theory.stability import Alignment, Stability, alignment, dense_spectrum, stability

__all__ = [
    "Alignment",
    "Drift",
    "FeatureVerdict",
    "GradientTerms",
    "Grams",
    "Stability",
    "TDProblem",
    "alignment",
    "covariance_dense",
    "covariance_doubling",
    "covariance_steps",
    "delta_in_samples",
    "dense_covariance",
    "dense_spectrum",
    "float64",
    "given_noise",
    "gradient_terms",
    "gradient_terms_in_samples",
    "gram_matrices",
    "grams_of",
    "identity_covariance",
    "inverse_of_K",
    "isotropic_noise",
    "jacobians",
    "judge_features",
    "label_noise",
    "linear_td",
    "linear_td_far",
    "mean_dot_product",
    "mean_squared_norm",
    "noise_factor",
    "noise_with_identity_covariance",
    "noisy_td",
    "null_space_bases",
    "null_space_cosines",
    "oblique_projector",
    "ornstein_uhlenbeck",
    "outcome",
    "paired_draws",
    "parameter_covariance",
    "parameter_noise",
    "predicted_drift",
    "project",
    "pseudo_gradient",
    "pseudo_hessian",
    "pseudo_hessian_closed_form",
    "pseudo_hessian_derivative",
    "pseudo_hessian_derivative_closed_form",
    "pseudo_hessian_product",
    "regularizer",
    "sample_covariance",
    "sample_covariance_steps",
    "sgd_noise",
    "stability",
    "td_problem",
]
