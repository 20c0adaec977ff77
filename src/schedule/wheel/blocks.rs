//! Lists of entry numbers, all kept in blocks of one pool, so that no slot holds memory that it does not use.
//!
//! A number in a list has a *place*, which no other number of any list has at the same time. Lists only grow at the end
//! and are only taken apart from the front, block by block; a block that is taken is at once free for other lists.

#![allow(clippy::cast_possible_truncation, reason = "the pool asserts that its numbers fit")]

/// How many numbers a block holds.
const BLOCK_LEN: usize = 64;

/// The end of a chain of blocks.
const NO_BLOCK: u32 = u32::MAX;

/// Where a number stands: its block times the length of a block, plus its offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// The place of what stands in no list.
    pub(super) const NOWHERE: Place = Place(u32::MAX);
}

struct Block {
    numbers: [u32; BLOCK_LEN],
    next: u32,
}

/// The first in, first out list of one slot. It may hold numbers that count no more; who does is for the owner to know.
#[derive(Clone, Copy)]
pub(super) struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        first: NO_BLOCK,
        last: NO_BLOCK,
        len: 0,
    };

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Whether the numbers that count would fit in fewer blocks, by half at least.
    pub(super) fn wastes_blocks(&self, n_counting: u32) -> bool {
        self.len as usize > BLOCK_LEN && self.len / 2 > n_counting
    }
}

/// A last in, first out list.
pub(super) struct Stack {
    top: u32,
    len: u32,
}

impl Stack {
    pub(super) const EMPTY: Stack = Stack { top: NO_BLOCK, len: 0 };
}

/// The numbers of one block, taken out of its list.
pub(super) struct Taken {
    numbers: [u32; BLOCK_LEN],
    len: usize,
    block: u32,
}

impl Taken {
    /// The numbers, each with the place that it had.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, u32)> + '_ {
        let first = first_place(self.block);
        (first..).map(Place).zip(self.numbers[..self.len].iter().copied())
    }
}

/// The pool.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    unused: u32,
}

impl Blocks {
    pub(super) const fn new() -> Blocks {
        Blocks {
            blocks: Vec::new(),
            unused: NO_BLOCK,
        }
    }

    /// Puts a number at the end of a list.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, number: u32) -> Place {
        let offset = list.len as usize % BLOCK_LEN;
        if offset == 0 {
            let block = self.take_unused(NO_BLOCK);
            match list.len {
                0 => list.first = block,
                _ => self.blocks[list.last as usize].next = block,
            }
            list.last = block;
        }
        list.len += 1;
        self.blocks[list.last as usize].numbers[offset] = number;
        Place(first_place(list.last) + offset as u32)
    }

    /// Takes the first block off a list.
    #[inline]
    pub(super) fn take_first(&mut self, list: &mut List) -> Option<Taken> {
        if list.len == 0 {
            return None;
        }
        let block = list.first;
        let Block { numbers, next } = self.blocks[block as usize];
        let len = BLOCK_LEN.min(list.len as usize);
        list.first = next;
        list.len -= len as u32;
        self.blocks[block as usize].next = self.unused;
        self.unused = block;
        Some(Taken { numbers, len, block })
    }

    /// Drops all numbers of a list, at a cost that does not depend on their count.
    pub(super) fn clear(&mut self, list: &mut List) {
        if list.len > 0 {
            self.blocks[list.last as usize].next = self.unused;
            self.unused = list.first;
        }
        *list = List::EMPTY;
    }

    /// Puts a number on a stack.
    #[inline]
    pub(super) fn push_top(&mut self, stack: &mut Stack, number: u32) {
        let offset = stack.len as usize % BLOCK_LEN;
        if offset == 0 {
            stack.top = self.take_unused(stack.top);
        }
        stack.len += 1;
        self.blocks[stack.top as usize].numbers[offset] = number;
    }

    /// Takes the last number off a stack.
    #[inline]
    pub(super) fn pop_top(&mut self, stack: &mut Stack) -> Option<u32> {
        stack.len = stack.len.checked_sub(1)?;
        let offset = stack.len as usize % BLOCK_LEN;
        let block = stack.top;
        let Block { ref numbers, next } = self.blocks[block as usize];
        let number = numbers[offset];
        if offset == 0 {
            stack.top = next;
            self.blocks[block as usize].next = self.unused;
            self.unused = block;
        }
        Some(number)
    }

    /// The memory that the pool takes, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>()
    }

    fn take_unused(&mut self, next: u32) -> u32 {
        let block = self.unused;
        if block != NO_BLOCK {
            self.unused = std::mem::replace(&mut self.blocks[block as usize].next, next);
            return block;
        }
        let block = self.blocks.len();
        assert!(block < (u32::MAX as usize) / BLOCK_LEN, "more than four billion timers");
        self.blocks.push(Block {
            numbers: [0; BLOCK_LEN],
            next,
        });
        block as u32
    }
}

fn first_place(block: u32) -> u32 {
    block * BLOCK_LEN as u32
}
