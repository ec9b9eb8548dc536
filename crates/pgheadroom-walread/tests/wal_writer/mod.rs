//! Writes WAL as PostgreSQL lays it out, for tests: apart from the reader's code.

#![allow(dead_code, clippy::cast_possible_truncation)] // each test file uses its part

use std::fs;
use std::path::{Path, PathBuf};

pub const SEGMENT: u64 = 1 << 20;
const PAGE: u64 = 8192;

/// A block of a record to be written.
#[derive(Debug, Clone)]
pub struct Block {
    pub relfilenode: u32,
    pub fork: u8,
    pub data: Vec<u8>,
    pub image: Option<u16>,
}

pub fn block(relfilenode: u32, data: usize) -> Block {
    Block {
        relfilenode,
        fork: 0,
        data: vec![7; data],
        image: None,
    }
}

pub fn imaged(relfilenode: u32, image_bytes: u16) -> Block {
    Block {
        relfilenode,
        fork: 0,
        data: Vec::new(),
        image: Some(image_bytes),
    }
}

/// WAL of one timeline from a segment's begin.
pub struct Writer {
    pub magic: u16,
    pub timeline: u32,
    pub system: u64,
    start: u64,
    pub bytes: Vec<u8>,
    pub prev: u64,
    pub xid: u32,
    /// Flags of the next page beside those that follow from its place.
    pub flags: u16,
}

impl Writer {
    pub fn new(start: u64) -> Self {
        assert_eq!(start % SEGMENT, 0);
        Self {
            magic: 0xD118,
            timeline: 1,
            system: 42,
            start,
            bytes: Vec::new(),
            prev: 0,
            xid: 700,
            flags: 0,
        }
    }

    /// Where the next byte goes.
    pub fn position(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn page_header(&mut self, left: u32) {
        let lsn = self.position();
        let long = lsn.is_multiple_of(SEGMENT);
        let info = u16::from(left > 0) | if long { 2 } else { 0 } | self.flags;
        self.flags = 0;
        self.bytes.extend(self.magic.to_le_bytes());
        self.bytes.extend(info.to_le_bytes());
        self.bytes.extend(self.timeline.to_le_bytes());
        self.bytes.extend(lsn.to_le_bytes());
        self.bytes.extend(left.to_le_bytes());
        self.bytes.extend([0; 4]);
        if long {
            self.bytes.extend(self.system.to_le_bytes());
            self.bytes.extend((SEGMENT as u32).to_le_bytes());
            self.bytes.extend((PAGE as u32).to_le_bytes());
        }
    }

    /// Writes a record; returns where it begins and its length.
    pub fn record(&mut self, rmgr: u8, info: u8, blocks: &[Block], main: &[u8]) -> (u64, u32) {
        if self.position().is_multiple_of(PAGE) {
            self.page_header(0);
        }
        let begin = self.position();
        let payload = payload(blocks, main);
        let total = 24 + payload.len() as u32;
        let mut record = Vec::new();
        record.extend(total.to_le_bytes());
        record.extend(self.xid.to_le_bytes());
        record.extend(self.prev.to_le_bytes());
        record.extend([info, rmgr, 0, 0]);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&payload), &record);
        record.extend(crc.to_le_bytes());
        record.extend(payload);
        self.put(&record);
        self.prev = begin;
        (begin, total)
    }

    /// Lays a record's bytes over pages, and pads.
    pub fn put(&mut self, record: &[u8]) {
        let mut left = record;
        while !left.is_empty() {
            if self.position().is_multiple_of(PAGE) {
                self.page_header(left.len() as u32);
            }
            let room = (PAGE - self.position() % PAGE) as usize;
            let (now, then) = left.split_at(room.min(left.len()));
            self.bytes.extend(now);
            left = then;
        }
        while !self.position().is_multiple_of(8) {
            self.bytes.push(0);
        }
    }

    /// Ends the segment as pg_switch_wal does.
    pub fn switch(&mut self) {
        self.record(0, 0x40, &[], &[]);
        while !self.position().is_multiple_of(SEGMENT) {
            self.bytes.push(0);
        }
    }

    /// Writes the segments into a folder, the last one filled up with zeros; their paths.
    pub fn save(&self, folder: &Path) -> Vec<PathBuf> {
        fs::create_dir_all(folder).unwrap();
        let mut paths = Vec::new();
        for (n, chunk) in self.bytes.chunks(SEGMENT as usize).enumerate() {
            let path = folder.join(name(self.timeline, self.start + n as u64 * SEGMENT));
            let mut whole = chunk.to_vec();
            whole.resize(SEGMENT as usize, 0);
            fs::write(&path, whole).unwrap();
            paths.push(path);
        }
        paths
    }
}

pub fn name(timeline: u32, start: u64) -> String {
    let segment = start / SEGMENT;
    let per_log = (1_u64 << 32) / SEGMENT;
    format!(
        "{timeline:08X}{:08X}{:08X}",
        segment / per_log,
        segment % per_log
    )
}

fn payload(blocks: &[Block], main: &[u8]) -> Vec<u8> {
    let (mut headers, mut contents) = (Vec::new(), Vec::new());
    let mut last = None;
    for (id, block) in blocks.iter().enumerate() {
        let same = last == Some(block.relfilenode);
        let flags = block.fork
            | if block.image.is_some() { 0x10 } else { 0 }
            | if block.data.is_empty() { 0 } else { 0x20 }
            | if same { 0x80 } else { 0 };
        headers.extend([id as u8, flags]);
        headers.extend((block.data.len() as u16).to_le_bytes());
        if let Some(bytes) = block.image {
            headers.extend(bytes.to_le_bytes());
            let has_hole = bytes < PAGE as u16;
            headers.extend(if has_hole { 100_u16 } else { 0 }.to_le_bytes());
            headers.push(u8::from(has_hole) | 2);
            contents.extend(vec![9; usize::from(bytes)]);
        }
        if !same {
            for oid in [1663, 5, block.relfilenode] {
                headers.extend(u32::to_le_bytes(oid));
            }
        }
        headers.extend(3_u32.to_le_bytes());
        contents.extend(&block.data);
        last = Some(block.relfilenode);
    }
    match main.len() {
        0 => {}
        bytes @ 1..=255 => headers.extend([255, bytes as u8]),
        bytes => {
            headers.push(254);
            headers.extend((bytes as u32).to_le_bytes());
        }
    }
    headers.extend(contents);
    headers.extend(main);
    headers
}

/// A folder of a test's own, removed with it.
pub struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

impl std::ops::Deref for Folder {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

/// An empty folder.
pub fn folder(test: &str) -> Folder {
    let folder = std::env::temp_dir().join(format!("pgh-walread-{}-{test}", std::process::id()));
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    Folder(folder)
}

/// A number of a simple generator; the same in every run.
pub fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
