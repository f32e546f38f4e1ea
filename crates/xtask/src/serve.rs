//! `cargo xtask serve`: the site on 127.0.0.1, as a plain static host would have it.
//!
//! Every answer carries the strict content security policy, so that what works
//! here works on a host that sets one. Each connection has a thread of its own
//! and takes one request: browsers open connections that they leave idle, and
//! with threads shared between connections those would hold up the others.

use anyhow::{Context, Result, bail};
use clap::Args;
use percent_encoding::percent_decode_str;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::{build, site};

/// How long a connection may stay silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The longest head of a request that is read, in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// How many ports after the wanted one are tried.
const PORTS: u16 = 100;

/// What to serve, and where.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    build: build::Options,
    /// The port to listen on, or the next free one; 0 takes any
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,
    /// Serve what is in the folder without building it first
    #[arg(long)]
    no_build: bool,
    /// Serve below this path, as a host with other pages would
    #[arg(long, value_name = "PATH", default_value = "/")]
    under: String,
}

/// The command. It ends only when it is interrupted.
pub fn main(options: &Options) -> Result<()> {
    let folder = options.build.folder();
    if !options.no_build {
        build::build(&options.build)?;
    } else if !folder.join(site::INDEX).is_file() {
        bail!(
            "there is no site in {}: run `cargo xtask build`",
            folder.display()
        );
    }
    let listener = listen(options.port)?;
    let site = Site::new(&folder, &options.under)?;
    println!("serving http://{}{}", listener.local_addr()?, site.under);
    io::stdout().flush()?;
    accept(&listener, &Arc::new(site));
    Ok(())
}

/// Listens on `port` of 127.0.0.1, or on the next one that is free.
fn listen(port: u16) -> Result<TcpListener> {
    for candidate in port..=port.saturating_add(PORTS) {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error).context(format!("listening on port {candidate}")),
        }
    }
    bail!("port {port} and the {PORTS} after it are taken: give another by --port")
}

/// Answers connections for as long as the program runs.
fn accept(listener: &TcpListener, site: &Arc<Site>) {
    for stream in listener.incoming().flatten() {
        let site = Arc::clone(site);
        // A browser that went away in the meantime is no error of the server's.
        thread::spawn(move || converse(&site, stream).ok());
    }
}

/// Reads one request and answers it.
fn converse(site: &Site, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    let answer = loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        head.extend_from_slice(&piece[..length]);
        if let Some(answer) = site.answer(&head) {
            break answer;
        }
    };
    answer.write(&mut stream)
}

/// A folder served below a path.
struct Site {
    /// The folder, without symbolic links on the way to it.
    folder: PathBuf,
    /// The path it is served below, with a slash at either end.
    under: String,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(PathBuf),
    /// A folder named without the slash at its end: relative links would break.
    Redirect(String),
    Nothing,
}

impl Site {
    fn new(folder: &Path, under: &str) -> Result<Self> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("opening {}", folder.display()))?;
        let under = match under.trim_matches('/') {
            "" => "/".to_owned(),
            path => format!("/{path}/"),
        };
        Ok(Self { folder, under })
    }

    /// The answer to the request that `head` begins, or nothing while more of it must come.
    fn answer(&self, head: &[u8]) -> Option<Answer> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Partial) if head.len() <= LONGEST_HEAD => return None,
            Ok(httparse::Status::Complete(_)) => {}
            _ => {
                return Some(Answer::plain(
                    "400 Bad Request",
                    "this is no HTTP request\n",
                ));
            }
        }
        let path = request.path.unwrap_or_default();
        Some(match request.method {
            Some("GET") => Answer::of(self.find(path)),
            Some("HEAD") => Answer {
                head_only: true,
                ..Answer::of(self.find(path))
            },
            _ => Answer::plain("405 Method Not Allowed", "only GET and HEAD are answered\n"),
        })
    }

    /// What is at `url`, a path with or without a query.
    fn find(&self, url: &str) -> Found {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if format!("{path}/") == self.under {
            return Found::Redirect(self.under.clone());
        }
        let Some(file) = path
            .strip_prefix(&self.under)
            .and_then(|inner| self.file(inner))
        else {
            return Found::Nothing;
        };
        if file.is_file() {
            return Found::File(file);
        }
        if !path.ends_with('/') {
            return Found::Redirect(format!("{path}/"));
        }
        match file.join(site::INDEX) {
            index if index.is_file() => Found::File(index),
            _ => Found::Nothing,
        }
    }

    /// The file or folder at `inner`, if it exists and lies in the site.
    fn file(&self, inner: &str) -> Option<PathBuf> {
        let inner = percent_decode_str(inner).decode_utf8().ok()?;
        let inner = Path::new(&*inner);
        let only_names = inner
            .components()
            .all(|c| matches!(c, Component::Normal(_)));
        if !only_names {
            return None;
        }
        // The real path, so that a symbolic link leads out of the site no more than `..` does.
        let file = self.folder.join(inner).canonicalize().ok()?;
        file.starts_with(&self.folder).then_some(file)
    }
}

/// An answer to a request.
struct Answer {
    status: &'static str,
    media_type: &'static str,
    location: Option<String>,
    content: Vec<u8>,
    /// A request may want the head of the answer only.
    head_only: bool,
}

impl Answer {
    fn plain(status: &'static str, text: &str) -> Self {
        Self {
            status,
            media_type: "text/plain; charset=utf-8",
            location: None,
            content: text.into(),
            head_only: false,
        }
    }

    fn of(found: Found) -> Self {
        match found {
            Found::Nothing => Self::plain("404 Not Found", "there is no such file\n"),
            Found::Redirect(to) => Self {
                location: Some(to),
                ..Self::plain("301 Moved Permanently", "")
            },
            Found::File(path) => match fs::read(&path) {
                Ok(content) => Self {
                    media_type: media_type(&path),
                    content,
                    ..Self::plain("200 OK", "")
                },
                Err(error) => Self::plain("500 Internal Server Error", &format!("{error}\n")),
            },
        }
    }

    fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        let length = self.content.len().to_string();
        let fixed = [
            ("Content-Type", self.media_type),
            ("Content-Length", &length),
            ("Content-Security-Policy", site::CONTENT_SECURITY_POLICY),
            ("X-Content-Type-Options", "nosniff"),
            // A rebuilt page shows at once.
            ("Cache-Control", "no-cache"),
            ("Connection", "close"),
        ];
        let location = self.location.iter().map(|to| ("Location", to.as_str()));
        for (name, value) in fixed.into_iter().chain(location) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        if !self.head_only {
            stream.write_all(&self.content)?;
        }
        stream.flush()
    }
}

/// The type a browser insists on: it runs no module and streams no wasm of another.
fn media_type(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    match extension {
        // Not in the table, or there without the character set.
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "toml" | "txt" | "md" | "ftl" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        other => mime_guess::from_ext(other)
            .first_raw()
            .unwrap_or("application/octet-stream"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn site(under: &str) -> Result<(tempfile::TempDir, Site)> {
        let outside = tempfile::tempdir()?;
        let dist = outside.path().join("dist");
        fs::create_dir_all(dist.join("assets"))?;
        fs::write(outside.path().join("secret.txt"), "secret")?;
        fs::write(dist.join("index.html"), "<!doctype html>")?;
        fs::write(dist.join("app_bg.wasm"), b"\0asm")?;
        fs::write(dist.join("assets/a b.json"), "{}")?;
        let site = Site::new(&dist, under)?;
        Ok((outside, site))
    }

    /// The whole answer to one request, as text.
    fn ask(server: SocketAddr, request: &str) -> Result<String> {
        let mut stream = TcpStream::connect(server)?;
        write!(stream, "{request}\r\nHost: x\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn running(under: &str) -> Result<(tempfile::TempDir, SocketAddr)> {
        let (folder, site) = site(under)?;
        let listener = listen(0)?;
        let address = listener.local_addr()?;
        thread::spawn(move || accept(&listener, &Arc::new(site)));
        Ok((folder, address))
    }

    #[test]
    fn media_types_are_those_a_browser_insists_on() {
        let types = [
            ("a.html", "text/html; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.wasm", "application/wasm"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.json", "application/json"),
            ("a.woff2", "font/woff2"),
            ("a.toml", "text/plain; charset=utf-8"),
            ("a", "application/octet-stream"),
        ];
        for (name, expected) in types {
            assert_eq!(media_type(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn an_answer_has_its_type_and_the_strict_policy() -> Result<()> {
        let (_folder, server) = running("/")?;
        let answer = ask(server, "GET /app_bg.wasm?v=1 HTTP/1.1")?;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("Content-Type: application/wasm\r\n"));
        assert!(answer.contains("Cache-Control: no-cache\r\n"));
        assert!(answer.contains(site::CONTENT_SECURITY_POLICY));
        assert!(ask(server, "GET /assets/a%20b.json HTTP/1.1")?.ends_with("{}"));
        Ok(())
    }

    #[test]
    fn the_folder_cannot_be_left() -> Result<()> {
        let (_folder, server) = running("/")?;
        for path in [
            "/../secret.txt",
            "/assets/../../secret.txt",
            "/%2e%2e/secret.txt",
            "/..%2fsecret.txt",
            "//etc/passwd",
            "/assets/%00",
        ] {
            let answer = ask(server, &format!("GET {path} HTTP/1.1"))?;
            assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
            assert!(!answer.contains("secret\n"), "{path}");
        }
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_does_not_lead_out() -> Result<()> {
        let (folder, site) = site("/")?;
        let secret = folder.path().join("secret.txt");
        std::os::unix::fs::symlink(secret, folder.path().join("dist/link.txt"))?;
        assert_eq!(site.find("/link.txt"), Found::Nothing);
        Ok(())
    }

    #[test]
    fn below_a_path_only_that_path_is_served() -> Result<()> {
        let (_folder, site) = site("docs/zswap")?;
        assert!(matches!(site.find("/docs/zswap/"), Found::File(_)));
        assert!(matches!(
            site.find("/docs/zswap/app_bg.wasm"),
            Found::File(_)
        ));
        assert_eq!(
            site.find("/docs/zswap"),
            Found::Redirect("/docs/zswap/".to_owned())
        );
        assert_eq!(site.find("/index.html"), Found::Nothing);
        Ok(())
    }

    #[test]
    fn a_folder_without_a_page_has_nothing_to_show() -> Result<()> {
        let (_folder, site) = site("/")?;
        assert_eq!(site.find("/assets"), Found::Redirect("/assets/".to_owned()));
        assert_eq!(site.find("/assets/"), Found::Nothing);
        Ok(())
    }

    #[test]
    fn other_methods_are_refused() -> Result<()> {
        let (_folder, server) = running("/")?;
        assert!(ask(server, "DELETE /index.html HTTP/1.1")?.starts_with("HTTP/1.1 405"));
        let head = ask(server, "HEAD /index.html HTTP/1.1")?;
        assert!(
            head.starts_with("HTTP/1.1 200") && !head.contains("doctype"),
            "{head}"
        );
        Ok(())
    }

    #[test]
    fn a_taken_port_gives_the_next_one() -> Result<()> {
        let first = listen(0)?;
        let taken = first.local_addr()?.port();
        let port = listen(taken)?.local_addr()?.port();
        assert!(port > taken && port <= taken + PORTS);
        Ok(())
    }

    #[test]
    fn idle_connections_hold_up_nobody() -> Result<()> {
        let (_folder, server) = running("/")?;
        let _idle: Vec<_> = (0..32).map(|_| TcpStream::connect(server)).collect();
        assert!(ask(server, "GET / HTTP/1.1")?.starts_with("HTTP/1.1 200"));
        Ok(())
    }

    #[test]
    fn a_request_may_come_in_pieces() -> Result<()> {
        let (_folder, server) = running("/")?;
        let mut stream = TcpStream::connect(server)?;
        for piece in ["GE", "T /index.html HT", "TP/1.1\r\nHost: x\r\n", "\r\n"] {
            stream.write_all(piece.as_bytes())?;
            thread::sleep(Duration::from_millis(5));
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        assert!(answer.ends_with("<!doctype html>"), "{answer}");
        Ok(())
    }

    #[test]
    fn what_is_no_request_is_refused() -> Result<()> {
        let (_folder, server) = running("/")?;
        assert!(ask(server, "\0\0\0")?.starts_with("HTTP/1.1 400"));
        let long = format!("GET /{} HTTP/1.1", "a".repeat(LONGEST_HEAD + 1));
        // The server may close before it has read it all, which loses the answer.
        assert!(ask(server, &long).map_or(true, |answer| answer.contains("40")));
        Ok(())
    }
}
