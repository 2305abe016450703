//! What the operator wants.

use super::finished::Finished;
use super::input::Command;
use super::member::Place;
use super::round::{Absence, Stage};
use super::shared::Outbox;
use super::{Federation, Phase};

impl Federation {
    pub(super) fn command(&mut self, command: Command, out: &mut Outbox) {
        match (command, &mut self.phase) {
            (_, Phase::Finished(_) | Phase::Failed(_)) => return,
            (Command::Begin, Phase::Enrolling(enrolling)) => enrolling.begin = true,
            (Command::Explore, Phase::Exploiting(exploiting)) => {
                exploiting.explore = self.shared.strategy.get().explores();
            }
            (Command::Begin | Command::Explore, _) => return,
            (Command::Pause, _) => self.shared.paused = true,
            (Command::Resume, _) => self.shared.paused = false,
            (Command::Finish, phase) => *phase = Phase::Finished(Finished),
            (Command::Remove(node), phase) => match self.shared.roster.find(&node) {
                Place::Member(column) => {
                    let round = self.shared.round;
                    self.shared.roster.member_mut(column).removed.get_or_insert(round);
                    let round = phase.stage_mut().and_then(Stage::round_mut);
                    if let Some((round, place)) = round.and_then(|r| r.draw.place(column).map(|p| (r, p))) {
                        round.give_up(place, Absence::Died);
                    }
                }
                Place::Lobby(_) => self.shared.roster.dismiss(&node),
                Place::Stranger => return,
            },
        }
        out.persist = true;
        out.manifest = true;
    }
}
