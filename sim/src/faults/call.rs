//! The calls of a worker whose futures it may drop.

history::names! {
    /// A call whose future a worker may drop.
    #[derive(Default)]
    pub enum Call as "call" {
        /// The acquire.
        #[default]
        Acquire = "acquire",
        /// The work under a lease that is renewed beside it. A renewal in progress is dropped, too.
        Renew = "renew",
        /// The release, which the library then continues in the background.
        Release = "release",
    }
}
