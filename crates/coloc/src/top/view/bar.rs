//! The memory of a GPU as a bar: what is used, promised, not ours, free.

use crate::top::paint::{People, Piece};
use coloc_api::view::{GpuView, InstanceView};
use ratatui_core::style::Style;

/// Memory slices of a GPU that can be partitioned.
const SLICES: usize = 8;
/// Compute slices of it.
const COMPUTE: u32 = 7;

/// One cell.
#[derive(Clone, Copy)]
struct Cell(char, Style);

/// The cells of a bar, as pieces of a line.
pub(super) fn bar(gpu: &GpuView, people: &People, muted: Style, cells: usize) -> Vec<Piece> {
    let free = Cell('·', muted);
    let mut all = vec![free; cells];
    if gpu.lost {
        all.fill(Cell('?', muted));
    } else if gpu.mig && !gpu.instances.is_empty() {
        partitioned(gpu, people, muted, &mut all);
    } else {
        shared(gpu, people, muted, &mut all);
    }
    pieces(&all)
}

fn shared(gpu: &GpuView, people: &People, muted: Style, all: &mut [Cell]) {
    let total = gpu.memory_total_bytes.max(1);
    let mut at = 0;
    for (number, resident) in gpu.residents.iter().enumerate() {
        let style = people.style(&resident.user);
        let used = resident.used_bytes.unwrap_or(0);
        let solid = Cell(block(number), style);
        fill(all, total, at, at + used, solid);
        let promised = resident.promised_bytes.max(used);
        fill(all, total, at + used, at + promised, Cell('░', style));
        at += promised;
    }
    let foreign: u64 = gpu.foreign.iter().filter_map(|process| process.bytes).sum();
    if foreign > 0 {
        // Not ours is at the far end, in a cell at least.
        let from = total.saturating_sub(foreign.max(total / all.len().max(1) as u64));
        fill(all, total, from, total, Cell('╱', muted));
    }
}

/// Neighbours are told apart without colours too.
fn block(number: usize) -> char {
    if number.is_multiple_of(2) { '█' } else { '▓' }
}

fn fill(all: &mut [Cell], total: u64, from: u64, to: u64, cell: Cell) {
    let place = |bytes: u64| {
        let place = bytes as f64 / total as f64 * all.len() as f64;
        (place.round() as usize).min(all.len())
    };
    let (from, to) = (place(from), place(to));
    if from < to {
        all[from..to].fill(cell);
    }
}

fn partitioned(gpu: &GpuView, people: &People, muted: Style, all: &mut [Cell]) {
    let cells = all.len();
    let place = |slice: usize| slice.min(SLICES) * cells / SLICES;
    for (number, instance) in gpu.instances.iter().enumerate() {
        let (from, to) = (
            place(instance.start_slice as usize),
            place((instance.start_slice + instance.slices) as usize),
        );
        let Some(part) = all.get_mut(from..to).filter(|part| !part.is_empty()) else { continue };
        let (inside, end) = part.split_at_mut(part.len() - 1);
        let resident = gpu.residents.iter().find(|one| Some(one.id) == instance.task);
        if let Some(resident) = resident {
            let style = people.style(&resident.user);
            inside.fill(Cell('░', style));
            let used = resident.used_bytes.unwrap_or(0).min(instance.memory_bytes);
            fill(inside, instance.memory_bytes.max(1), 0, used, Cell(block(number), style));
        }
        end[0] = Cell('│', muted);
    }
    for slice in (0..SLICES).filter(|&slice| is_out_of_reach(&gpu.instances, slice as u32)) {
        all[place(slice)..place(slice + 1)].fill(Cell('╳', muted));
    }
}

fn covers(instance: &InstanceView, slice: u32) -> bool {
    (instance.start_slice..instance.start_slice + instance.slices).contains(&slice)
}

/// No instance can be made that has a slice: all compute slices are taken, or it is the last one and its neighbour is.
fn is_out_of_reach(instances: &[InstanceView], slice: u32) -> bool {
    let taken = |slice| instances.iter().any(|instance| covers(instance, slice));
    let compute = |instance: &InstanceView| -> u32 {
        let digits: String = instance.profile.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    let all: u32 = instances.iter().map(compute).sum();
    let last = SLICES as u32 - 1;
    !taken(slice) && (all >= COMPUTE || slice == last && taken(last - 1))
}

/// Cells of one style after another are one piece.
fn pieces(all: &[Cell]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for &Cell(character, style) in all {
        match pieces.last_mut() {
            Some((text, last)) if *last == style => text.push(character),
            _ => pieces.push((character.to_string(), style)),
        }
    }
    pieces
}
