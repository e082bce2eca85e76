//! A perceptron of [`LAYERS`] square layers with a squared-error loss: forward, backward, and the SGD update.
//!
//! It learns what a fixed random layer ([`Teacher`]) makes of random input, so the loss has to go down, and every
//! replica can make its own share of the data from the seed.

use crate::matrix::{multiply, multiply_transposed, transpose};
use crate::random::Random;

/// Layers of the model; each one's gradient is a bucket of its own in the all-reduce.
pub(crate) const LAYERS: usize = 3;

const LEARNING_RATE: f32 = 0.1;
const MOMENTUM: f32 = 0.5;
const SEED_WEIGHTS: u64 = 11;
const SEED_TEACHER: u64 = 12;
const SEED_DATA: u64 = 13;

/// The function to be learnt.
#[derive(Debug)]
pub(crate) struct Teacher {
    width: usize,
    weights: Vec<f32>,
}

impl Teacher {
    pub(crate) fn new(width: usize) -> Self {
        let mut weights = vec![0.0; width * width];
        Random::new(SEED_TEACHER, 0).fill(&mut weights, initial_scale(width));
        Self { width, weights }
    }

    /// Input and wanted output of `replica` in `step`, `rows x width` each.
    pub(crate) fn batch(&self, replica: usize, step: usize, rows: usize) -> (Vec<f32>, Vec<f32>) {
        let mut input = vec![0.0; rows * self.width];
        Random::new(SEED_DATA, (replica as u64) << 32 | step as u64).fill(&mut input, 1.0);
        let mut target = vec![0.0; rows * self.width];
        multiply(&mut target, &input, &self.weights, self.width, self.width);
        target.iter_mut().for_each(|x| *x = x.tanh());
        (input, target)
    }
}

/// Weights and momentum of one replica, layer by layer.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) weights: Vec<Vec<f32>>,
    velocity: Vec<Vec<f32>>,
}

impl Model {
    pub(crate) fn new(width: usize) -> Self {
        let layer = |n: usize| {
            let mut weights = vec![0.0; width * width];
            Random::new(SEED_WEIGHTS, n as u64).fill(&mut weights, initial_scale(width));
            weights
        };
        Self {
            weights: (0..LAYERS).map(layer).collect(),
            velocity: vec![vec![0.0; width * width]; LAYERS],
        }
    }

    /// One SGD step with the mean gradient of `layer`.
    pub(crate) fn update(&mut self, layer: usize, gradient: &[f32]) {
        for ((w, v), g) in self.weights[layer]
            .iter_mut()
            .zip(&mut self.velocity[layer])
            .zip(gradient)
        {
            *v = MOMENTUM * *v - LEARNING_RATE * g;
            *w += *v;
        }
    }

    /// FNV-1a over the bits of all weights: equal exactly when two replicas hold the same model.
    pub(crate) fn digest(&self) -> u64 {
        let bytes = self
            .weights
            .iter()
            .flatten()
            .flat_map(|w| w.to_bits().to_le_bytes());
        bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
    }

    /// Whether every weight is a number.
    pub(crate) fn is_finite(&self) -> bool {
        self.weights.iter().flatten().all(|w| w.is_finite())
    }

    /// Root of the sum of squares of all weights.
    pub(crate) fn norm(&self) -> f64 {
        self.weights
            .iter()
            .flatten()
            .map(|&w| f64::from(w) * f64::from(w))
            .sum::<f64>()
            .sqrt()
    }
}

/// What the "device" holds for a step: weights in its own layout, activations, gradients.
#[derive(Debug)]
pub(crate) struct Scratch {
    width: usize,
    /// Transposed weights, for the backward pass.
    transposed: Vec<Vec<f32>>,
    /// Output of each layer.
    activations: Vec<Vec<f32>>,
    /// Error at each layer's output.
    errors: Vec<Vec<f32>>,
    /// Gradient of each layer.
    pub(crate) gradients: Vec<Vec<f32>>,
}

impl Scratch {
    pub(crate) fn new(width: usize, rows: usize) -> Self {
        let per_layer = |words: usize| vec![vec![0.0; words]; LAYERS];
        Self {
            width,
            transposed: per_layer(width * width),
            activations: per_layer(rows * width),
            errors: per_layer(rows * width),
            gradients: per_layer(width * width),
        }
    }

    /// Brings the weights into the device's layout.
    pub(crate) fn load_weights(&mut self, model: &Model) {
        for (out, weights) in self.transposed.iter_mut().zip(&model.weights) {
            transpose(out, weights, self.width);
        }
    }

    /// Forward pass; the loss is the mean over `divisor` rows, so that the replicas' sum is the mean over all.
    pub(crate) fn forward(
        &mut self,
        model: &Model,
        input: &[f32],
        target: &[f32],
        divisor: f32,
    ) -> f32 {
        let n = self.width;
        for layer in 0..LAYERS {
            let (before, after) = self.activations.split_at_mut(layer);
            let input = before.last().map_or(input, Vec::as_slice);
            multiply(&mut after[0], input, &model.weights[layer], n, n);
            if layer + 1 < LAYERS {
                after[0].iter_mut().for_each(|x| *x = x.tanh());
            }
        }
        let scale = 1.0 / divisor;
        let mut loss = 0.0;
        let last = LAYERS - 1;
        for ((error, output), wanted) in self.errors[last]
            .iter_mut()
            .zip(&self.activations[last])
            .zip(target)
        {
            let difference = output - wanted;
            loss += difference * difference;
            *error = 2.0 * difference * scale;
        }
        loss * scale
    }

    /// Backward pass of one layer, last layer first; leaves its gradient in [`Scratch::gradients`].
    pub(crate) fn backward(&mut self, layer: usize, input: &[f32]) {
        let n = self.width;
        let input = if layer == 0 {
            input
        } else {
            &self.activations[layer - 1]
        };
        multiply_transposed(&mut self.gradients[layer], input, &self.errors[layer], n, n);
        if layer > 0 {
            let (before, after) = self.errors.split_at_mut(layer);
            multiply(
                &mut before[layer - 1],
                &after[0],
                &self.transposed[layer],
                n,
                n,
            );
            for (error, output) in before[layer - 1]
                .iter_mut()
                .zip(&self.activations[layer - 1])
            {
                *error *= 1.0 - output * output;
            }
        }
    }
}

/// Uniform initial weights whose products keep the size of their input.
#[expect(clippy::cast_precision_loss, reason = "widths are small")]
fn initial_scale(width: usize) -> f32 {
    (3.0 / width as f32).sqrt()
}

/// Losses of the first `steps` steps, and the norm of the weights after them, computed by one model over all
/// replicas' rows at once: what the all-reduced training must agree with.
pub(crate) fn reference(
    width: usize,
    replicas: usize,
    rows: usize,
    steps: usize,
) -> (Vec<f32>, f64) {
    let teacher = Teacher::new(width);
    let mut model = Model::new(width);
    let mut scratch = Scratch::new(width, rows * replicas);
    let divisor = divisor(rows * replicas);
    let mut losses = Vec::with_capacity(steps);
    for step in 0..steps {
        let shares = (0..replicas).map(|replica| teacher.batch(replica, step, rows));
        let (inputs, targets): (Vec<_>, Vec<_>) = shares.unzip();
        let (input, target) = (inputs.concat(), targets.concat());
        scratch.load_weights(&model);
        losses.push(scratch.forward(&model, &input, &target, divisor));
        for layer in (0..LAYERS).rev() {
            scratch.backward(layer, &input);
            model.update(layer, &scratch.gradients[layer]);
        }
    }
    (losses, model.norm())
}

/// Rows of the whole batch, as the number that losses and gradients are divided by.
#[expect(clippy::cast_precision_loss, reason = "row counts are small")]
pub(crate) fn divisor(rows: usize) -> f32 {
    rows as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let (width, rows) = (6, 4);
        let (input, target) = Teacher::new(width).batch(0, 0, rows);
        let mut model = Model::new(width);
        let mut scratch = Scratch::new(width, rows);
        scratch.load_weights(&model);
        scratch.forward(&model, &input, &target, divisor(rows));
        for layer in (0..LAYERS).rev() {
            scratch.backward(layer, &input);
        }
        let gradients = scratch.gradients.clone();
        for (layer, gradient) in gradients.iter().enumerate() {
            for at in [0, 7, 35] {
                let step = 1e-2;
                let mut loss_at = |offset: f32| {
                    let kept = model.weights[layer][at];
                    model.weights[layer][at] = kept + offset;
                    let loss = scratch.forward(&model, &input, &target, divisor(rows));
                    model.weights[layer][at] = kept;
                    loss
                };
                let slope = (loss_at(step) - loss_at(-step)) / (2.0 * step);
                let gradient = gradient[at];
                assert!(
                    (slope - gradient).abs() < 2e-3 + 0.02 * slope.abs(),
                    "layer {layer}, weight {at}: {slope} {gradient}"
                );
            }
        }
    }

    #[test]
    fn training_lowers_the_loss_for_every_size_on_offer() {
        for width in [8, 32, 64] {
            let (losses, _) = reference(width, 2, 16, 40);
            let (first, last) = (losses[0], losses[39]);
            assert!(last < 0.9 * first, "width {width}: {first} to {last}");
        }
    }

    #[test]
    fn a_digest_tells_one_bit() {
        let mut model = Model::new(4);
        let before = model.digest();
        model.weights[2][15] = f32::from_bits(model.weights[2][15].to_bits() ^ 1);
        assert_ne!(model.digest(), before);
    }
}
