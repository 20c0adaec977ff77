//! Layer 3, adapters: Kubernetes bytes to records, orders to requests, answers to outcomes.
