//! In order of arrival. The head blocks everybody behind it, and while nothing but improved GPUs can
//! help it, only those are looked at.

use crate::place::Search;
use crate::scheduler::{Turn, World};

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    let mut improved = std::mem::take(&mut world.improved);
    world.gpus.take_improved(&mut improved);
    while let Some(head) = world.head()
        && !turn.is_over()
    {
        let known_blocked = world.blocked_head == Some(head) && !world.policy.time_matters();
        let search = if known_blocked { Search::Only(&improved) } else { Search::Everywhere };
        if !world.try_start(turn, head, search) {
            world.blocked_head = Some(head);
            break;
        }
    }
    world.improved = improved;
}
