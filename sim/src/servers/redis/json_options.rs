//! The options of the scripts' library `cjson`, which are a server's.

/// The options of `cjson`. Those of a server last until it starts again, or until SCRIPT FLUSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonOptions {
    /// Makes objects of very sparse arrays; otherwise they are errors.
    pub(crate) converts_sparse: i32,
    /// The factor by which the largest index of a very sparse array exceeds the number of its elements, if it
    /// also exceeds `sparse_safe`. 0: no array is very sparse.
    pub(crate) sparse_ratio: i32,
    pub(crate) sparse_safe: i32,
    /// The most nested tables that are encoded.
    pub(crate) encode_depth_max: i32,
    /// The most nested tables that are decoded.
    pub(crate) decode_depth_max: i32,
    /// Infinities and NaN are errors (0), written as C writes them (1), or written as null (2).
    pub(crate) encodes_invalid: i32,
    /// Accepts infinities, NaN and hexadecimal numbers.
    pub(crate) decodes_invalid: i32,
    /// The significant digits of a number.
    pub(crate) precision: i32,
    /// It has no effect here.
    pub(crate) keeps_buffer: i32,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            converts_sparse: 0,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            encodes_invalid: 0,
            decodes_invalid: 1,
            precision: 14,
            keeps_buffer: 1,
        }
    }
}
