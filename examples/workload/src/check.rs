//! Judges the numeric result of a run.

use crate::config::Config;
use crate::mlp;
use crate::report::{Check, ReplicaOutcome};

/// Steps that one process trains again over the whole batch: enough for an error in the all-reduce to grow.
pub(crate) const REFERENCE_STEPS: usize = 8;

/// Largest relative difference to the reference. The two add the same numbers in another order; what that makes was
/// below 1e-5 in every size tried, and a replica left out of the sum makes more than 1e-2.
const TOLERANCE: f64 = 1e-3;

/// Steps from which on the loss must have gone down: each step sees new data, so single losses scatter.
const STEPS_TO_LEARN: usize = 40;

/// The verdict over all replicas' results; there must be at least one, and each must have done every step.
pub(crate) fn judge(config: &Config, replicas: &[ReplicaOutcome]) -> Check {
    let mut failures = Vec::new();
    let Some(first) = replicas.first() else {
        return Check {
            failures: vec!["no replica has a result".to_owned()],
            ..Check::default()
        };
    };
    if replicas.len() != config.replicas() {
        failures.push(format!(
            "{} of {} replicas have a result",
            replicas.len(),
            config.replicas()
        ));
    }
    if replicas.iter().any(|r| r.losses.len() != config.steps) {
        failures.push("a replica did not do every step".to_owned());
    }
    if replicas.iter().any(|r| r.digest != first.digest) {
        failures.push("the replicas' weights differ".to_owned());
    }
    if replicas
        .iter()
        .any(|r| !same_bits(&r.losses, &first.losses))
    {
        failures.push("the replicas' losses differ".to_owned());
    }
    let first_loss = first.losses.first().copied().unwrap_or(f32::NAN);
    let last_loss = first.losses.last().copied().unwrap_or(f32::NAN);
    if !last_loss.is_finite() {
        failures.push("the loss is not a number".to_owned());
    } else if config.steps >= STEPS_TO_LEARN && last_loss >= 0.9 * first_loss {
        failures.push(format!(
            "the loss did not go down: {first_loss} to {last_loss}"
        ));
    }

    let steps = config.steps.min(REFERENCE_STEPS);
    let (losses, norm) = mlp::reference(config.size, config.replicas(), config.rows, steps);
    let pairs = losses
        .iter()
        .zip(&first.losses)
        .map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let reference_error = pairs
        .chain([(norm, first.norm)])
        .map(|(a, b)| ((a - b) / a).abs())
        .fold(0.0, f64::max);
    if reference_error > TOLERANCE {
        failures.push(format!(
            "{reference_error:.1e} off what one process computes"
        ));
    }
    Check {
        ok: failures.is_empty(),
        failures,
        first_loss,
        last_loss,
        weights: format!("{:016x}", first.digest),
        reference_error,
    }
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(config: &Config) -> Vec<ReplicaOutcome> {
        let (losses, norm) =
            mlp::reference(config.size, config.replicas(), config.rows, config.steps);
        vec![
            ReplicaOutcome {
                losses,
                digest: 5,
                norm
            };
            config.replicas()
        ]
    }

    fn config() -> Config {
        Config {
            processes: 2,
            threads: 1,
            steps: 5,
            size: 8,
            rows: 4,
            kill: None,
        }
    }

    #[test]
    fn a_right_result_passes_and_each_wrong_one_is_named() {
        assert!(judge(&config(), &right(&config())).ok);
        let fails = |spoil: &dyn Fn(&mut Vec<ReplicaOutcome>)| {
            let mut result = right(&config());
            spoil(&mut result);
            let check = judge(&config(), &result);
            assert!(!check.ok);
            check.failures.join("; ")
        };
        assert!(fails(&|r| r[1].digest = 6).contains("weights differ"));
        assert!(fails(&|r| r[1].losses[2] *= 1.0001).contains("losses differ"));
        assert!(fails(&|r| r[1].losses.truncate(4)).contains("every step"));
        assert!(
            fails(&|r| r.iter_mut().for_each(|r| r.losses[3] *= 1.01))
                .contains("off what one process")
        );
        assert!(
            fails(&|r| r.iter_mut().for_each(|r| r.norm *= 1.01)).contains("off what one process")
        );
        assert!(
            fails(&|r| r.iter_mut().for_each(|r| r.losses[4] = f32::NAN)).contains("not a number")
        );
        assert!(fails(&Vec::clear).contains("no replica"));
        assert!(fails(&|r| drop(r.pop())).contains("1 of 2 replicas"));
    }
}
