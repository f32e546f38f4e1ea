//! Two models of NeXosim that hand a token to and fro: who gets it keeps it for
//! a microsecond of virtual time and sends it back.

use kernel_bench::Count;
use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::{EventSource, Output};
use nexosim::simulation::{Mailbox, SimInit, Simulation};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::time::Duration;

/// How long a model keeps the token.
const TURN: Duration = Duration::from_micros(1);
/// Turns between two looks at the clock.
const PART: u32 = 1_000;

#[derive(Default, Serialize, Deserialize)]
struct Player {
    other: Output<u64>,
}

#[Model]
impl Player {
    fn receive(&mut self, turns: u64, context: &Context<Self>) {
        let sent = context.schedule_event(TURN, schedulable!(Self::send), turns + 1);
        sent.expect("a turn takes some time");
    }

    #[nexosim(schedulable)]
    async fn send(&mut self, turns: u64) {
        self.other.send(turns).await;
    }
}

/// The game.
pub struct PingPong(Simulation);

impl PingPong {
    pub fn new() -> Result<PingPong, Box<dyn Error>> {
        let (mut ping, mut pong) = (Player::default(), Player::default());
        let (at_ping, at_pong) = (Mailbox::new(), Mailbox::new());
        ping.other.connect(Player::receive, &at_pong);
        pong.other.connect(Player::receive, &at_ping);
        // On one thread, as the virtual kernel; the token is never at two places.
        let mut game = SimInit::with_num_threads(1);
        let token = EventSource::new()
            .connect(Player::receive, &at_ping)
            .register(&mut game);
        let mut game = game
            .add_model(ping, at_ping, "ping")
            .add_model(pong, at_pong, "pong")
            .init(MonotonicTime::EPOCH)?;
        game.process_event(&token, 0)?;
        Ok(PingPong(game))
    }

    pub fn step(&mut self) -> Count {
        let part = TURN * PART;
        self.0.step_until(part).expect("the game has no end");
        Count(PART.into())
    }
}
