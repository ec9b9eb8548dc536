//! Which files are read, and in which order.
//!
//! Of the files given, those that hold WAL of one server become one line of pieces: by position,
//! on the newest timeline and those that it came from. What is not read is named.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use pgheadroom_layout::Lsn;

use crate::error::WalError;
use crate::history::{self, HISTORY_BYTES_MAX, History};
use crate::piece::{Found, Packing, Piece};

/// Pieces in the order in which they are read.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// The timeline that they lead to.
    pub timeline: u32,
    /// Files that are not read because their content is that of an older name, or none yet.
    pub not_yet_written: Vec<PathBuf>,
    /// Files of timelines that do not lead there, or that the same segment of a newer replaces.
    pub other_timelines: Vec<PathBuf>,
    /// Whether timelines were joined without a history file that says where.
    pub history_missing: bool,
}

/// Looks at files and folders and puts what holds WAL in order.
///
/// In a folder, files are known by their names; a file that is given by itself may have any.
///
/// # Errors
/// [`WalError`] for files that cannot be read, of two servers or of two versions, and for none.
pub fn choose(paths: &[PathBuf], timeline: Option<u32>) -> Result<Chosen, WalError> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut histories: BTreeMap<u32, History> = BTreeMap::new();
    for path in paths {
        if path.is_dir() {
            list(path, &mut files, &mut histories)?;
        } else if !add_history(path, &mut histories)? {
            files.push(path.clone());
        }
    }
    let mut chosen = Chosen::default();
    let mut pieces = Vec::new();
    let (mut unwritten_yet, mut damaged) = (Vec::new(), Vec::new());
    for path in files {
        match Piece::of_file(&path) {
            Ok(Found::Piece(piece)) => pieces.push(piece),
            Ok(Found::NotYetWritten) => unwritten_yet.push(path),
            Err(error) if error.is_of_one_file() => damaged.push((path, error)),
            // A server removes and recycles segments while it runs.
            Err(_) if !paths.contains(&path) && matches!(path.try_exists(), Ok(false)) => {}
            Err(error) => return Err(error),
        }
    }
    add_by_name(&mut pieces, damaged)?;
    let mut unwritten_so_far = Vec::new();
    for path in unwritten_yet {
        let like = pieces.first();
        match like.and_then(|like| Piece::by_name(&path, like)) {
            Some(piece) if piece.has_pages() => pieces.push(piece),
            Some(piece) => unwritten_so_far.push(piece),
            None => chosen.not_yet_written.push(path),
        }
    }
    // A name alone makes no timeline.
    let says = |piece: &&Piece| histories.contains_key(&piece.timeline) || piece.is_known();
    let newest = || pieces.iter().filter(says).map(|piece| piece.timeline).max();
    let Some(newest) = timeline.or_else(newest) else {
        let are_there = !chosen.not_yet_written.is_empty() || !unwritten_so_far.is_empty();
        return Err(nothing(paths, unwritten(are_there)));
    };
    alike(&pieces)?;
    let is_there =
        histories.contains_key(&newest) || pieces.iter().any(|piece| piece.timeline == newest);
    if !is_there {
        return Err(nothing(
            paths,
            "no file there is of the timeline that was asked for",
        ));
    }
    chosen.timeline = newest;
    let line = Line::of(newest, &histories);
    for piece in unwritten_so_far {
        if line.is_followed(&piece, &pieces) {
            pieces.push(piece);
        } else {
            chosen.not_yet_written.push(piece.path);
        }
    }
    let mut by_start: BTreeMap<Lsn, Piece> = BTreeMap::new();
    for mut piece in pieces {
        if line.is_of_one_left(&piece) {
            chosen.not_yet_written.push(piece.path);
            continue;
        }
        piece.left = line.left(&piece);
        if !line.has(&piece) {
            chosen.other_timelines.push(piece.path);
            continue;
        }
        match by_start.remove(&piece.start) {
            None => {
                by_start.insert(piece.start, piece);
            }
            Some(other) => {
                let (kept, left) = if rank(&piece) > rank(&other) {
                    (piece, other)
                } else {
                    (other, piece)
                };
                chosen.other_timelines.push(left.path);
                by_start.insert(kept.start, kept);
            }
        }
    }
    chosen.pieces = by_start.into_values().collect();
    if chosen.pieces.is_empty() {
        return Err(nothing(
            paths,
            "no file there is of the timeline that was asked for",
        ));
    }
    chosen.history_missing =
        line.history.is_none() && chosen.pieces.iter().any(|piece| piece.timeline != newest);
    Ok(chosen)
}

/// Adds segments whose first page does not say what they are, if others say it and the name where
/// they lie: the reader finds what is in them, and names what is not.
fn add_by_name(pieces: &mut Vec<Piece>, damaged: Vec<(PathBuf, WalError)>) -> Result<(), WalError> {
    for (path, error) in damaged {
        let like = pieces.first();
        let Some(piece) = like.and_then(|like| Piece::by_name(&path, like)) else {
            return Err(error);
        };
        pieces.push(piece);
    }
    Ok(())
}

/// Why no file is one to read.
const fn unwritten(are_there: bool) -> &'static str {
    if are_there {
        "segments there are empty, or hold an older one's log, as those kept for later"
    } else {
        "no file there is a segment"
    }
}

/// Of two files of one segment the one that is known to be it, then the newer timeline's, then the
/// whole one rather than `.partial`.
fn rank(piece: &Piece) -> (bool, u32, bool, bool) {
    let is_partial = piece.name.is_some_and(|name| name.is_partial);
    (
        piece.is_known(),
        piece.timeline,
        !is_partial,
        piece.is_plain(),
    )
}

/// The timelines that lead to one.
struct Line<'a> {
    newest: u32,
    history: Option<&'a History>,
}

impl<'a> Line<'a> {
    fn of(newest: u32, histories: &'a BTreeMap<u32, History>) -> Self {
        Self {
            newest,
            history: histories.get(&newest),
        }
    }

    /// Where a piece's timeline was left on the way to the newest; None where not within it.
    fn left(&self, piece: &Piece) -> Option<Lsn> {
        let history = self.history.filter(|_| piece.timeline != self.newest)?;
        let found = history
            .iter()
            .find(|(timeline, _)| *timeline == piece.timeline);
        found
            .map(|(_, left)| *left)
            .filter(|left| *left < piece.end())
    }

    /// Whether a piece holds nothing but what an earlier timeline had there, behind the place at
    /// which it was left: a segment of it that is kept for later may have its own number.
    ///
    /// Source: `RemoveNonParentXlogFiles`, src/backend/access/transam/xlog.c (`REL_18_STABLE`).
    fn is_of_one_left(&self, piece: &Piece) -> bool {
        let begins = self.history.and_then(|history| {
            let before = history.iter().rfind(|(one, _)| *one < piece.timeline);
            before.map(|(_, left)| *left)
        });
        piece.said_timeline < piece.timeline
            && begins.is_some_and(|begins| piece.start >= begins)
            && !piece.has_pages_of(piece.timeline)
    }

    /// Whether the log goes on behind a segment of which there is no other file: then something was
    /// written to it.
    fn is_followed(&self, piece: &Piece, pieces: &[Piece]) -> bool {
        let is_there = |other: &Piece| other.start == piece.start;
        // What an older timeline has there was written before that was left.
        let is_behind = |other: &Piece| {
            !other.is_damaged
                && other.start > piece.start
                && other.timeline >= piece.timeline
                && !self.is_of_one_left(other)
        };
        !pieces.iter().any(is_there) && pieces.iter().any(is_behind)
    }

    /// Whether a piece is of the line: of an earlier timeline up to where that was left. Without a
    /// history each older timeline is taken for an earlier one.
    fn has(&self, piece: &Piece) -> bool {
        if piece.timeline == self.newest {
            return true;
        }
        match self.history {
            Some(history) => history
                .iter()
                .any(|(timeline, left)| *timeline == piece.timeline && piece.start < *left),
            None => piece.timeline < self.newest,
        }
    }
}

fn list(
    folder: &Path,
    files: &mut Vec<PathBuf>,
    histories: &mut BTreeMap<u32, History>,
) -> Result<(), WalError> {
    let unreadable = |error: std::io::Error| WalError::Unreadable {
        path: folder.display().to_string(),
        problem: error.to_string(),
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        found.push(entry.map_err(unreadable)?.path());
    }
    found.sort();
    for path in found {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            // WAL-G and pgBackRest put segments into folders of their own: `0000000100000000`.
            let is_segments = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_segments && !path.is_symlink() {
                list(&path, files, histories)?;
            }
        } else if Packing::of_name(name).1.is_some() {
            // A pipe would be waited for, which nobody may write to.
            if fs::metadata(&path).map_or(true, |found| found.is_file()) {
                files.push(path);
            }
        } else {
            add_history(&path, histories)?;
        }
    }
    Ok(())
}

fn add_history(path: &Path, histories: &mut BTreeMap<u32, History>) -> Result<bool, WalError> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let Some(timeline) = history::timeline_of(name) else {
        return Ok(false);
    };
    let shown = path.display().to_string();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(HISTORY_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| WalError::Unreadable {
            path: shown.clone(),
            problem: error.to_string(),
        })?;
    histories.insert(timeline, history::parse(&shown, &text)?);
    Ok(true)
}

/// Refuses files of two systems, versions or segment sizes.
fn alike(pieces: &[Piece]) -> Result<(), WalError> {
    let Some(first) = pieces.first() else {
        return Ok(());
    };
    for piece in pieces {
        let pairs = [
            ("the system", piece.system, first.system),
            (
                "PostgreSQL",
                u64::from(piece.major.number()),
                u64::from(first.major.number()),
            ),
            ("a segment size", piece.segment_bytes, first.segment_bytes),
        ];
        for (what, found, expected) in pairs {
            if found != expected {
                return Err(WalError::Mixed {
                    path: piece.path.display().to_string(),
                    what,
                    found: found.to_string(),
                    other: first.path.display().to_string(),
                    expected: expected.to_string(),
                });
            }
        }
    }
    Ok(())
}

fn nothing(paths: &[PathBuf], problem: &str) -> WalError {
    let shown: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    WalError::Nothing {
        what: shown.join(", "),
        problem: problem.to_owned(),
    }
}
