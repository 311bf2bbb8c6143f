//! Default values, which schedule files leave out.

/// Returns true if the field has its default value, for `skip_serializing_if`.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
