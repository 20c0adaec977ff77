//! A hierarchical timer wheel that knows ticks, not clocks.
