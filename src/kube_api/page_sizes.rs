//! The sizes of the pages of all lists.

/// Number of objects in a page of most lists, as in the built-in controllers and `kubectl`.
pub const PAGE_SIZE: u32 = 500;

/// Number of objects in a page of CronJobs or Jobs that are also watched. For each page that an API server answers from
/// its cache, it copies the index of the whole collection, so a few large pages cost it less than many small ones.
pub(super) const LARGE_PAGE_SIZE: u32 = 2_000;

/// Maximum size of a page of CronJobs or Jobs. 2,000 objects of 16 KiB fit, which is more than most of them take. A
/// larger page is dropped and requested again with a lower limit, which the later pages of the list keep. The next list
/// begins with the full number again.
pub(super) const PAGE_BYTES_MAX: u64 = 32 << 20;

/// Maximum size of a page of Leases: 500 Leases with the longest annotations and their managed fields.
pub(super) const LEASE_PAGE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of pages of a list of Leases. More indicate a fault: members are few, and shards 256.
pub(super) const LEASE_PAGES_MAX: usize = 100;
