//! The allocator against PyTorch's rules, and against itself.

use super::*;
use proptest::prelude::*;

#[test]
fn segments_have_the_sizes_of_pytorch() {
    let cases = [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
        (33 * MIB, 34 * MIB),
    ];
    for (request, reserved) in cases {
        let mut allocator = Allocator::new(None);
        allocator.allocate(request).unwrap();
        assert_eq!(allocator.reserved(), reserved, "request of {request}");
    }
}

#[test]
fn the_tightest_free_block_is_taken() {
    let mut allocator = Allocator::new(None);
    let wide = allocator.allocate(40 * MIB).unwrap();
    let tight = allocator.allocate(30 * MIB).unwrap();
    allocator.free(wide);
    allocator.free(tight);
    let _held = allocator.allocate(29 * MIB).unwrap();
    allocator.allocate(40 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 70 * MIB, "the 40 MiB block was left whole");
}

#[test]
fn a_large_rest_of_a_mebibyte_is_not_split_off() {
    let mut allocator = Allocator::new(None);
    let block = allocator.allocate(31 * MIB).unwrap();
    assert_eq!(allocator.allocated(), 32 * MIB);
    allocator.free(block);
    assert_eq!(allocator.allocated(), 0);
}

#[test]
fn at_the_limit_free_segments_are_given_back_first() {
    let mut allocator = Allocator::new(Some(100 * MIB));
    let first = allocator.allocate(60 * MIB).unwrap();
    allocator.free(first);
    allocator.allocate(80 * MIB).unwrap();
    assert_eq!(allocator.reserved(), 80 * MIB);
    assert_eq!(allocator.allocate(30 * MIB), Err(OutOfMemory { wanted: 30 * MIB }));
}

proptest! {
    #[test]
    fn everything_freed_is_free_again(
        requests in prop::collection::vec((1u64..64 * MIB, any::<prop::sample::Index>()), 1..60)
    ) {
        let mut allocator = Allocator::new(None);
        let mut held = Vec::new();
        for (bytes, which) in requests {
            held.push(allocator.allocate(bytes).unwrap());
            if held.len() > 4 {
                let block = held.swap_remove(which.index(held.len()));
                allocator.free(block);
            }
            prop_assert!(allocator.allocated() <= allocator.reserved());
        }
        held.into_iter().for_each(|block| allocator.free(block));
        prop_assert_eq!(allocator.allocated(), 0);
        let listed = allocator.free.iter().flat_map(FreeList::iter);
        let spans: Vec<Span> = listed.map(|span| allocator.spans[span.number as usize]).collect();
        let listed: u64 = spans.iter().map(|span| span.grains * GRAIN).sum();
        prop_assert_eq!(listed, allocator.reserved());
        let whole = |span: &Span| span.previous.is_none() && span.next.is_none();
        prop_assert!(spans.iter().all(whole), "free neighbours were merged");
    }
}

/// The same rules in the plainest way: each segment is a list of pieces, and every piece is looked at.
#[derive(Default)]
struct Plain {
    /// Whether of the small pool; sizes of the pieces in grains, and whether they are free.
    segments: Vec<(bool, Vec<(u64, bool)>)>,
}

impl Plain {
    /// Returns the address.
    fn allocate(&mut self, bytes: u64) -> u64 {
        let grains = bytes.max(1).div_ceil(GRAIN);
        let small = bytes <= MIB;
        let fit = self.fit(small, grains).unwrap_or_else(|| {
            let segment = match bytes {
                _ if small => 2 * MIB,
                bytes if bytes <= 10 * MIB - GRAIN => 20 * MIB,
                bytes => bytes.next_multiple_of(2 * MIB),
            };
            self.segments.push((small, vec![(segment / GRAIN, true)]));
            (self.segments.len() - 1, 0)
        });
        let pieces = &mut self.segments[fit.0].1;
        let rest = pieces[fit.1].0 - grains;
        pieces[fit.1].1 = false;
        if rest > if small { 0 } else { MIB / GRAIN } {
            pieces[fit.1].0 = grains;
            pieces.insert(fit.1 + 1, (rest, true));
        }
        let offset: u64 = pieces[..fit.1].iter().map(|(size, _)| size).sum();
        (fit.0 as u64 + 1) << 32 | offset
    }

    fn fit(&self, small: bool, grains: u64) -> Option<(usize, usize)> {
        let places = self.segments.iter().enumerate().filter(|(_, (pool, _))| *pool == small);
        let pieces = places.flat_map(|(segment, (_, pieces))| {
            pieces.iter().enumerate().map(move |(piece, state)| (state, (segment, piece)))
        });
        let fits = pieces.filter(|((size, free), _)| *free && *size >= grains);
        fits.min_by_key(|((size, _), place)| (*size, *place)).map(|(_, place)| place)
    }

    fn free(&mut self, address: u64) {
        let pieces = &mut self.segments[(address >> 32) as usize - 1].1;
        let mut start = 0;
        for piece in pieces.iter_mut() {
            piece.1 |= start == address & u64::from(u32::MAX);
            start += piece.0;
        }
        let mut merged: Vec<(u64, bool)> = Vec::new();
        for piece in pieces.drain(..) {
            match merged.last_mut() {
                Some(last) if last.1 && piece.1 => last.0 += piece.0,
                _ => merged.push(piece),
            }
        }
        *pieces = merged;
    }
}

proptest! {
    #[test]
    fn blocks_are_where_the_plainest_allocator_has_them(
        steps in prop::collection::vec(
            (1u64..8, 8u32..24, prop::option::weighted(0.45, any::<prop::sample::Index>())),
            1..250,
        ),
    ) {
        let (mut allocator, mut plain) = (Allocator::new(None), Plain::default());
        let mut held: Vec<(Block, u64)> = Vec::new();
        for (digit, zeros, freed) in steps {
            if let Some(which) = freed && !held.is_empty() {
                let (block, address) = held.swap_remove(which.index(held.len()));
                allocator.free(block);
                plain.free(address);
                continue;
            }
            let block = allocator.allocate(digit << zeros).unwrap();
            let address = plain.allocate(digit << zeros);
            prop_assert_eq!(allocator.spans[block.0 as usize].address, address);
            held.push((block, address));
        }
    }
}
