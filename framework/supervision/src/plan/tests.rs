use super::Decision::{self, Escalate, Forget, Rest};
use super::decide;
use crate::exit::{ErrorKind, Exit};
use crate::spec::Restart::{self, Permanent, Temporary, Transient};

const BACK_OFF: Decision = Decision::Restart { counts: false };
const COUNT: Decision = Decision::Restart { counts: true };

fn error(kind: ErrorKind) -> Exit {
    Exit::Error {
        kind,
        message: "it broke".to_owned(),
    }
}

fn escalated(cause: Exit) -> Exit {
    Exit::Escalated {
        child: "root/a/b".to_owned(),
        cause: Box::new(cause),
    }
}

#[test]
fn every_exit_of_every_kind_of_child_has_one_consequence() {
    let panic = Exit::Panic {
        message: "poison".to_owned(),
        location: None,
    };
    // exit; permanent, transient, temporary under a supervisor that can give up; permanent under one that cannot
    let table = [
        (Exit::Normal, [BACK_OFF, Rest, Forget], BACK_OFF),
        (Exit::Shutdown, [BACK_OFF, Rest, Forget], BACK_OFF),
        (
            error(ErrorKind::Transient),
            [BACK_OFF, BACK_OFF, Forget],
            BACK_OFF,
        ),
        (
            error(ErrorKind::Fatal),
            [Escalate, Escalate, Forget],
            BACK_OFF,
        ),
        (panic.clone(), [COUNT, COUNT, Forget], BACK_OFF),
        (Exit::Killed, [COUNT, COUNT, Forget], BACK_OFF),
        (Exit::Stuck, [COUNT, COUNT, Forget], BACK_OFF),
        (escalated(panic), [COUNT, COUNT, Forget], BACK_OFF),
        (
            escalated(error(ErrorKind::Fatal)),
            [COUNT, COUNT, Forget],
            BACK_OFF,
        ),
        (
            escalated(escalated(error(ErrorKind::Transient))),
            [BACK_OFF, BACK_OFF, Forget],
            BACK_OFF,
        ),
    ];
    for (exit, expected, without) in table {
        let decided =
            [Permanent, Transient, Temporary].map(|restart: Restart| decide(restart, &exit, true));
        assert_eq!(decided, expected, "{exit}");
        assert_eq!(decide(Permanent, &exit, false), without, "{exit}");
    }
}
