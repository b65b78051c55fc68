//! Which GPUs are idle, a bit each: whoever takes the first free ones reads a word or two.

use coloc_model::GpuId;

#[derive(Clone, Debug)]
pub(super) struct IdleSet {
    words: Vec<u64>,
    count: u32,
}

impl IdleSet {
    /// Nobody is known to be idle yet.
    pub(super) fn new(gpus: usize) -> Self {
        IdleSet { words: vec![0; gpus.div_ceil(64)], count: 0 }
    }

    pub(super) fn set(&mut self, gpu: GpuId, idle: bool) {
        let (word, bit) = (&mut self.words[gpu.index() / 64], 1 << (gpu.index() % 64));
        if (*word & bit != 0) != idle {
            *word ^= bit;
            if idle { self.count += 1 } else { self.count -= 1 }
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// In id order.
    pub(super) fn iter(&self) -> impl Iterator<Item = GpuId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let next = |&left: &u64| Some(left & (left - 1)).filter(|&left| left != 0);
            let left = std::iter::successors(Some(word).filter(|&word| word != 0), next);
            left.map(move |left| GpuId::from(64 * index + left.trailing_zeros() as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_gpus_come_in_order() {
        let mut set = IdleSet::new(200);
        for gpu in [199, 64, 3, 63, 0, 3] {
            set.set(GpuId(gpu), true);
        }
        set.set(GpuId(63), false);
        set.set(GpuId(100), false);
        assert_eq!(set.iter().map(|gpu| gpu.0).collect::<Vec<_>>(), [0, 3, 64, 199]);
        assert_eq!(set.count(), 4);
    }
}
