//! Row-major `f32` matrix products.
//!
//! All three forms run over whole rows in the inner loop (`row += factor * row`), which the compiler turns into
//! vector code; a product with a transposed right side would be a sum along the row, which it may not reorder.

/// `out = a * b`, with `a` of `rows x inner` and `b` of `inner x columns`.
pub(crate) fn multiply(out: &mut [f32], a: &[f32], b: &[f32], inner: usize, columns: usize) {
    out.fill(0.0);
    for (out_row, a_row) in out.chunks_exact_mut(columns).zip(a.chunks_exact(inner)) {
        for (&factor, b_row) in a_row.iter().zip(b.chunks_exact(columns)) {
            add_scaled(out_row, b_row, factor);
        }
    }
}

/// `out = aᵀ * b`, with `a` of `rows x inner` and `b` of `rows x columns`; `out` is `inner x columns`.
pub(crate) fn multiply_transposed(
    out: &mut [f32],
    a: &[f32],
    b: &[f32],
    inner: usize,
    columns: usize,
) {
    out.fill(0.0);
    for (a_row, b_row) in a.chunks_exact(inner).zip(b.chunks_exact(columns)) {
        for (&factor, out_row) in a_row.iter().zip(out.chunks_exact_mut(columns)) {
            add_scaled(out_row, b_row, factor);
        }
    }
}

/// `out = aᵀ` for a square matrix of side `n`.
pub(crate) fn transpose(out: &mut [f32], a: &[f32], n: usize) {
    for (i, row) in a.chunks_exact(n).enumerate() {
        for (j, &x) in row.iter().enumerate() {
            out[j * n + i] = x;
        }
    }
}

fn add_scaled(out: &mut [f32], row: &[f32], factor: f32) {
    for (o, &x) in out.iter_mut().zip(row) {
        *o += factor * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_a_hand_made_example() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 x 3
        let b = [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]; // 3 x 2
        let mut out = [9.0; 4];
        multiply(&mut out, &a, &b, 3, 2);
        assert_eq!(out, [58.0, 64.0, 139.0, 154.0]);

        // (3 x 2)ᵀ * (3 x 2)
        let mut out = [9.0; 4];
        multiply_transposed(&mut out, &a, &b, 2, 2);
        assert_eq!(
            out,
            [
                1.0 * 7.0 + 3.0 * 9.0 + 5.0 * 11.0,
                8.0 + 30.0 + 60.0,
                14.0 + 36.0 + 66.0,
                16.0 + 40.0 + 72.0
            ]
        );

        let mut out = [0.0; 4];
        transpose(&mut out, &[1.0, 2.0, 3.0, 4.0], 2);
        assert_eq!(out, [1.0, 3.0, 2.0, 4.0]);
    }
}
