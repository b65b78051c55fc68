//! The figures in a framework's out-of-memory error: what its process held on the GPU, and what it asked for on top.

use coloc_model::Bytes;

/// What a framework said of an allocation that failed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FailedAllocation {
    /// What was asked for.
    pub asked: Option<Bytes>,
    /// What the process held on that GPU, its context included.
    ///
    /// Memory that PyTorch has reserved and not handed out counts as held: before the error it looked there for a
    /// block that fits and gave back every segment that was wholly free. What is left are pieces between tensors, and
    /// the next attempt will have them too.
    pub held: Option<Bytes>,
    /// What was free on that GPU.
    pub free: Option<Bytes>,
    /// All that the GPU has, or that the process may use of it.
    pub total: Option<Bytes>,
}

/// No GPU comes near it. Drivers that do not know a figure write 2^64.
const ABSURD: Bytes = Bytes(1 << 50);
/// The longest error that is read.
const LONGEST: usize = 4000;
/// What a context and its libraries take, for errors that speak of the framework's own allocator alone.
const CONTEXT: Bytes = Bytes::from_mib(512);
/// Contexts are not larger than this.
const LARGEST_CONTEXT: Bytes = Bytes::from_mib(2048);

/// What comes before the size of an allocation that failed.
const ASKED: [&str; 6] = [
    "ried to allocate ",
    "rying to allocate ",
    "ailed to allocate request for ",
    "ailed to allocate ",
    "ut of memory allocating ",
    "request for ",
];
/// With the spelling of PyTorch 2.0 and 2.1.
const TOTAL: [&str; 2] = ["total capacity of ", "total capacty of "];

impl FailedAllocation {
    /// Reads the error that a text begins with. Terminals and loggers may have broken its lines.
    pub(crate) fn read(text: &str) -> Self {
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(at, _)| at);
        let words: Vec<&str> = text[..end].split_whitespace().collect();
        let text = words.join(" ");
        let total = TOTAL.iter().find_map(|words| size_after(&text, words));
        let total = total.or_else(|| size_before(&text, " total capacity"));
        let free = size_before(&text, " is free").or_else(|| size_before(&text, " free;"));
        let asked = ASKED.iter().find_map(|words| size_after(&text, words));
        FailedAllocation {
            asked: asked.or_else(|| tensor(&text)),
            held: held(&text, total, free).filter(|&held| held < ABSURD),
            free,
            total,
        }
    }
}

/// What the process held. PyTorch says it of the whole process where it can tell itself from others; where it cannot
/// (in a container, on Windows, before 2.0) it says what its own allocator reserved.
fn held(text: &str, total: Option<Bytes>, free: Option<Bytes>) -> Option<Bytes> {
    if let Some(held) = size_after(text, "this process has ") {
        return Some(held);
    }
    let allocated = size_before(text, " already allocated")
        .or_else(|| size_before(text, " is allocated by PyTorch"))
        .or_else(|| size_after(text, "allocated so far: "));
    let beside = size_before(text, " is reserved by PyTorch but unallocated")
        .or_else(|| size_before(text, " cached"));
    let reserved = size_before(text, " reserved in total")
        .or_else(|| Some(allocated? + beside.unwrap_or_default()))?;
    // In a container the process knows itself by another number than the driver.
    let is_it = |held: &Bytes| *held >= reserved && *held <= reserved + LARGEST_CONTEXT;
    if let Some(itself) = processes(text).filter(is_it).min() {
        return Some(itself);
    }
    let most = total.zip(free).map_or(ABSURD, |(total, free)| total.saturating_sub(free));
    Some((reserved + CONTEXT).min(most.max(reserved)))
}

/// What other processes have, as far as the driver can tell: «Process 4711 has 1.50 GiB memory in use».
fn processes(text: &str) -> impl Iterator<Item = Bytes> + '_ {
    let named = text.split("Process ").skip(1);
    named.filter_map(|rest| read_size(rest.split_once(" has ")?.1))
}

/// TensorFlow names the tensor: «OOM when allocating tensor with shape[64,256] and type float».
fn tensor(text: &str) -> Option<Bytes> {
    let (shape, rest) = text.split_once("tensor with shape[")?.1.split_once(']')?;
    let element = match rest.strip_prefix(" and type ")?.split_whitespace().next()? {
        "bool" | "int8" | "uint8" => 1u64,
        "half" | "bfloat16" | "int16" | "uint16" => 2,
        "float" | "int32" | "uint32" => 4,
        "double" | "int64" | "uint64" | "complex64" => 8,
        "complex128" => 16,
        _ => return None,
    };
    let sides = shape.split(',').map(|side| side.trim().parse::<u64>().ok());
    let bytes = sides.into_iter().try_fold(element, |product, side| product.checked_mul(side?))?;
    sensible(bytes as f64)
}

/// The size that follows these words.
fn size_after(text: &str, words: &str) -> Option<Bytes> {
    read_size(text.split_once(words)?.1)
}

/// The size that stands before these words.
fn size_before(text: &str, words: &str) -> Option<Bytes> {
    let (before, _) = text.split_once(words)?;
    let mut tokens = before.rsplitn(3, ' ');
    let (unit, number) = (tokens.next()?, tokens.next()?);
    read_size(&format!("{} {unit}", number.trim_start_matches('(')))
}

/// A number and its unit at the beginning of a text: «1.50 GiB», «2.00GiB», «8,000,000 bytes», «9.86G (».
fn read_size(text: &str) -> Option<Bytes> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let (number, rest) = text.split_at(text.find(|c| !is_number(c))?);
    let number: f64 = number.trim_end_matches(['.', ',']).replace(',', "").parse().ok()?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let unit = rest.find(|c: char| !c.is_ascii_alphabetic()).map_or(rest, |end| &rest[..end]);
    let exponent = match unit {
        "bytes" | "byte" | "B" => 0,
        "KiB" | "KB" | "K" => 10,
        "MiB" | "MB" | "M" => 20,
        "GiB" | "GB" | "G" => 30,
        "TiB" | "TB" | "T" => 40,
        _ => return None,
    };
    sensible(number * (1u64 << exponent) as f64)
}

fn sensible(bytes: f64) -> Option<Bytes> {
    (0.0..ABSURD.0 as f64).contains(&bytes).then_some(Bytes(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: f64 = (1u64 << 30) as f64;

    /// What a text says was asked for, held, free and there, in GiB with two digits; -1 for what it does not say.
    fn figures(text: &str) -> [f64; 4] {
        let FailedAllocation { asked, held, free, total } = FailedAllocation::read(text);
        [asked, held, free, total]
            .map(|size| size.map_or(-1.0, |size| (size.0 as f64 / GIB * 100.0).round() / 100.0))
    }

    fn check(cases: &[(&str, [f64; 4])]) {
        for (text, expected) in cases {
            assert_eq!(figures(text), *expected, "{text}");
        }
    }

    #[test]
    fn pytorch_1_speaks_of_its_own_allocator() {
        check(&[
            // 1.0 to 1.3: what is cached comes on top.
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; \
                 4.00 GiB already allocated; 6.33 GiB free; 179.00 MiB cached)",
                [16.0, 4.67, 6.33, 11.93],
            ),
            // 1.4 and newer.
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; \
                 9.49 GiB already allocated; 4.19 MiB free; 9.74 GiB reserved in total by PyTorch)",
                [0.02, 10.24, 0.0, 10.76],
            ),
            // A context takes no more than what is missing on the GPU.
            (
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.41 GiB (GPU 0; 2.00 GiB total \
                 capacity; 330.44 MiB already allocated; 1.23 GiB free; 410.00 MiB reserved in total by PyTorch) If \
                 reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
                [1.41, 0.77, 1.23, 2.0],
            ),
            // With set_per_process_memory_fraction.
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 5.59 GiB (GPU 0; 11.17 GiB total capacity; 0 bytes \
                 already allocated; 10.91 GiB free; 5.59 GiB allowed; 0 bytes reserved in total by PyTorch)",
                [5.59, 0.26, 10.91, 11.17],
            ),
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
                [2.0, -1.0, -1.0, -1.0],
            ),
        ]);
    }

    #[test]
    fn pytorch_2_speaks_of_its_process() {
        check(&[
            // 2.0 and 2.1, with their spelling and a limit of the script's own.
            (
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of \
                 79.15 GiB of which 38.09 GiB is free. Including non-PyTorch memory, this process has 41.06 GiB memory in \
                 use. Of the allocated memory 39.10 GiB is allocated by PyTorch, and 427.46 MiB is reserved by PyTorch but \
                 unallocated.",
                [0.06, 41.06, 38.09, 79.15],
            ),
            (
                "OutOfMemoryError: CUDA out of memory. Tried to allocate 996.00 MiB. GPU 0 has a total capacity of 44.43 GiB \
                 of which 9.06 GiB is free. Process 2102129 has 17.54 GiB memory in use. Including non-PyTorch memory, this \
                 process has 17.81 GiB memory in use. 17.69 GiB allowed; Of the allocated memory 17.44 GiB is allocated by \
                 PyTorch, and 59.88 MiB is reserved by PyTorch but unallocated.",
                [0.97, 17.81, 9.06, 44.43],
            ),
            // In a container its own process has another number, and neighbours are named too.
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of \
                 21.67 GiB of which 255.75 MiB is free. Process 2109 has 344.00 MiB memory in use. Process 1448259 has 21.07 \
                 GiB memory in use. Of the allocated memory 20.08 GiB is allocated by PyTorch, with 328.00 MiB allocated in \
                 private pools (e.g., CUDA Graphs), and 56.49 MiB is reserved by PyTorch but unallocated.",
                [0.26, 21.07, 0.25, 21.67],
            ),
            // Where the driver lists no process, a context is added to what the allocator has.
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 \
                 GiB of which 1.05 GiB is free. Of the allocated memory 36.50 GiB is allocated by PyTorch, and 1.02 GiB is \
                 reserved by PyTorch but unallocated.",
                [2.0, 38.02, 1.05, 39.39],
            ),
            // Windows does not know what processes have.
            (
                "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.13 GiB. GPU 0 has a total capacity of 8.00 GiB of \
                 which 6.10 GiB is free. Process 9132 has 17179869184.00 GiB memory in use. Including non-PyTorch memory, \
                 this process has 17179869184.00 GiB memory in use. 2.63 GiB allowed; Of the allocated memory 954.00 MiB is \
                 allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.",
                [2.13, 1.43, 6.1, 8.0],
            ),
        ]);
    }

    #[test]
    fn other_frameworks_and_broken_lines_are_read_too() {
        check(&[
            (
                "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.",
                [12.0, -1.0, -1.0, -1.0],
            ),
            (
                "RESOURCE_EXHAUSTED: Out of memory allocating 2147483648 bytes.",
                [2.0, -1.0, -1.0, -1.0],
            ),
            (
                "RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0",
                [2.0, -1.0, -1.0, -1.0],
            ),
            (
                "failed to allocate 9.86G (10587275264 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
                [9.86, -1.0, -1.0, -1.0],
            ),
            (
                "OOM when allocating tensor with shape[64,2016,64,64] and type float on /job:localhost/replica:0/task:0/\
                 device:GPU:0 by allocator GPU_0_bfc",
                [1.97, -1.0, -1.0, -1.0],
            ),
            (
                "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: \
                 4,294,967,296 bytes).",
                [8.0, 4.5, -1.0, -1.0],
            ),
            ("RuntimeError: CUDA error: out of memory", [-1.0; 4]),
            (
                "CUDA out of memory. Tried to allocate\n  304.00 MiB.\nGPU 0 has a total capacity of 94.97 GiB of which\n\
                 218.81 MiB is free.\nIncluding non-PyTorch memory, this process has 93.84 GiB\nmemory in use.",
                [0.3, 93.84, 0.21, 94.97],
            ),
        ]);
    }

    #[test]
    fn sizes_that_no_gpu_has_are_no_sizes() {
        for text in [
            "Tried to allocate 99999999999999999999 GiB.",
            "Tried to allocate 1048576.00 TiB.",
            "Tried to allocate .,.,. GiB.",
            "Tried to allocate -3 GiB.",
            "Tried to allocate 3 parsecs.",
            "Tried to allocate 3",
            "OOM when allocating tensor with shape[4294967296,4294967296,2] and type float on",
            "OOM when allocating tensor with shape[] and type float on",
        ] {
            assert_eq!(FailedAllocation::read(text), FailedAllocation::default(), "{text}");
        }
    }

    proptest! {
        /// Words of real errors in any order, with numbers and bytes between them.
        #[test]
        fn no_text_gives_absurd_sizes(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(vec![
                        "Tried to allocate ", "(GPU 0; ", " total capacity", "total capacity of ", " already allocated; ",
                        " is free. ", " free; ", "this process has ", "Process 1 has ", " memory in use. ", " GiB", " bytes",
                        "TiB", " reserved in total by PyTorch", " is allocated by PyTorch", "tensor with shape[", "] and type ",
                        "float ", "is reserved by PyTorch but unallocated", " cached", "allocated so far: ", "ÿ", "\u{a0}", ",", ".",
                    ]).prop_map(str::to_owned),
                    any::<u64>().prop_map(|number| number.to_string()),
                    any::<f64>().prop_map(|number| number.to_string()),
                    ".{0,8}",
                ],
                0..40,
            ),
        ) {
            let said = FailedAllocation::read(&pieces.concat());
            for size in [said.asked, said.held, said.free, said.total].into_iter().flatten() {
                prop_assert!(size < ABSURD, "{said:?}");
            }
        }
    }
}
