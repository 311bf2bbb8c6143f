//! Emits events: one `tracing` call for each row of the table.

/// Generates `emit!` from the table. The first token is a `$` for the inner macro.
macro_rules! emitters {
    ($d:tt $($target:literal { $( $(#[$doc:meta])* $variant:ident = $name:literal { $($field:ident: $type:ty),* } )* })*) => {
        /// Emits an event under its target: `emit!(WriteSent { key: …, owner: …, token: …, seq: … })`.
        ///
        /// All fields of the table's row must be given, in the row's order. An `Option` that is `None` is not
        /// logged. Values are computed only if a subscriber listens.
        ///
        /// # Example
        ///
        /// ```
        /// /// Counts an order, and tells a subscriber of `tracing` that the code has passed this point.
        /// fn count(orders: &mut u64) {
        ///     *orders += 1;
        ///     history::emit!(PointPassed { step: format!("order {orders}") });
        /// }
        /// let mut orders = 41;
        /// count(&mut orders);
        /// assert_eq!(orders, 42);
        /// ```
        #[macro_export]
        macro_rules! emit {
            $($(
                ($variant { $( $field: $d $field:expr ),* $d(,)? }) => {
                    $crate::tracing::info!(
                        target: $target,
                        event = $name,
                        $( { $crate::log_name::$field } = $d $field, )*
                    )
                };
            )*)*
        }
    };
}

events!(emitters $);
