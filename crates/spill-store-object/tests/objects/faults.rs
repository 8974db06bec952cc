//! What goes wrong between a store and its objects: every failure is one of the closed set, and says what is known.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use spill_engine::Damage;

use super::*;

/// In memory, with requests counted and some of them going wrong.
#[derive(Debug, Default)]
struct Unsteady {
    inner: InMemory,
    gets: AtomicU64,
    /// So many puts are carried out, and then their answers are lost and they are made again, as a client does.
    lose_answers: AtomicU32,
    /// So many requests fail.
    fail: AtomicU32,
}

impl fmt::Display for Unsteady {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Unsteady")
    }
}

impl Unsteady {
    fn step(&self) -> Result<()> {
        if take(&self.fail) {
            return Err(Error::Generic {
                store: "Unsteady",
                source: "the connection was reset\nand more that nobody needs".into(),
            });
        }
        Ok(())
    }
}

fn take(count: &AtomicU32) -> bool {
    let less = |left: u32| left.checked_sub(1);
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

#[async_trait]
impl ObjectStore for Unsteady {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.step()?;
        if take(&self.lose_answers) {
            self.inner
                .put_opts(location, payload.clone(), options.clone())
                .await?;
        }
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.step()?;
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn unsteady() -> (Arc<Unsteady>, Arc<dyn ObjectStore>) {
    let unsteady = Arc::new(Unsteady::default());
    (unsteady.clone(), unsteady)
}

fn at(key: ItemKey) -> Path {
    Path::from(format!("spill/results/items/{key}"))
}

#[test]
fn a_put_whose_answer_was_lost_is_stored_once() {
    runtime().block_on(async {
        let (unsteady, objects) = unsteady();
        let store = store(&objects);
        unsteady.lose_answers.store(1, Ordering::SeqCst);
        let key = keep(&store, bytes(70_000)).await;
        assert_eq!(read(&store, key).await, Ok(bytes(70_000)));
    });
}

#[test]
fn a_known_item_is_read_by_one_request_whatever_its_size() {
    runtime().block_on(async {
        let (unsteady, objects) = unsteady();
        let writer = store(&objects);
        let key = keep(&writer, bytes(5_000_000)).await;
        let reader = store(&objects);
        let range = ByteRange {
            offset: 4_000_000,
            length: 32 << 10,
        };
        let requests = async |store: &ObjectSpillStore| {
            let before = unsteady.gets.load(Ordering::SeqCst);
            let slice = store.read(key, &us(), range, NOW).await.expect("inside");
            assert_eq!(slice.bytes(), &bytes(5_000_000)[4_000_000..][..32 << 10]);
            unsteady.gets.load(Ordering::SeqCst) - before
        };
        assert_eq!(requests(&writer).await, 1);
        assert_eq!(requests(&reader).await, 2, "its description first");
        assert_eq!(requests(&reader).await, 1);
    });
}

#[test]
fn a_changed_byte_is_noticed_and_named() {
    both(async |objects| {
        let key = keep(&store(&objects), bytes(200_000)).await;
        let whole = objects
            .get(&at(key))
            .await
            .expect("there")
            .bytes()
            .await
            .expect("there");
        let data_at = whole.len() - 200_000;
        let damaged = async |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = whole.to_vec();
            change(&mut changed);
            objects.put(&at(key), changed.into()).await.expect("room");
            read(&store(&objects), key).await.expect_err("damaged")
        };
        let page = |start, end| ReadFailure::Corrupt(Damage::Page { start, end });
        assert_eq!(
            damaged(&|object| object[data_at] ^= 1).await,
            page(0, 65_536)
        );
        assert_eq!(
            damaged(&|object| object[data_at + 199_999] ^= 1).await,
            page(196_608, 200_000)
        );
        let length = damaged(&|object| object.truncate(data_at + 100_000)).await;
        let (expected, found) = (200_000, 100_000);
        assert_eq!(
            length,
            ReadFailure::Corrupt(Damage::Length { expected, found })
        );
        let description = ReadFailure::Corrupt(Damage::Description);
        for change in [0, 9, 20, data_at - 1] {
            assert_eq!(damaged(&|object| object[change] ^= 0x55).await, description);
        }
        let nothing = damaged(&|object| object.clear()).await;
        assert!(matches!(nothing, ReadFailure::Corrupt(_)), "{nothing}");

        objects
            .put(&at(key), whole.to_vec().into())
            .await
            .expect("room");
        let fresh = store(&objects);
        assert_eq!(read(&fresh, key).await, Ok(bytes(200_000)));
        let mut shorter = whole.to_vec();
        shorter.truncate(data_at + 1);
        objects.put(&at(key), shorter.into()).await.expect("room");
        let failure = read(&fresh, key)
            .await
            .expect_err("changed behind a known description");
        assert!(matches!(failure, ReadFailure::Corrupt(_)), "{failure}");
    });
}

#[test]
fn a_damaged_item_goes_with_the_expired() {
    both(async |objects| {
        for junk in ["junk", "", "spill 1\n\0\0"] {
            let key = keep(&store(&objects), bytes(100)).await;
            let payload = PutPayload::from_static(junk.as_bytes());
            objects.put(&at(key), payload).await.expect("room");
            let swept = store(&objects).sweep(NOW).await.expect("a sweep");
            assert_eq!((swept.expired, swept.bytes), (1, junk.len() as u64));
            let found = read(&store(&objects), key).await;
            assert_eq!(found, Err(ReadFailure::NotFound));
        }
    });
}

#[test]
fn a_request_that_fails_says_what_is_known_and_loses_nothing() {
    runtime().block_on(async {
        let (unsteady, objects) = unsteady();
        let store = store(&objects);
        let key = keep(&store, bytes(100)).await;
        let fail = || unsteady.fail.store(1, Ordering::SeqCst);
        fail();
        let failure = read(&store, key).await.expect_err("reset").to_string();
        assert!(failure.contains("the connection was reset"), "{failure}");
        assert!(
            !failure.contains("nobody needs") && !failure.contains("deleted"),
            "{failure}"
        );
        assert_eq!(read(&store, key).await, Ok(bytes(100)), "it is still there");
        fail();
        let refused = put(&store, head(), bytes(10)).await.expect_err("reset");
        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
        // An item whose description cannot be asked for is not taken for a damaged one.
        let fresh = super::store(&objects);
        fail();
        assert_eq!(fresh.sweep(NOW).await.expect("a sweep").expired, 0);
        assert_eq!(read(&fresh, key).await, Ok(bytes(100)));
    });
}

#[test]
fn a_client_without_the_right_key_is_refused() {
    runtime().block_on(async {
        let endpoint = Endpoint::start().await;
        let (ours, theirs) = (store(&endpoint.bucket()), store(&endpoint.stranger()));
        let key = keep(&ours, bytes(10)).await;
        let refused = put(&theirs, head(), bytes(10)).await.expect_err("refused");
        assert!(matches!(refused, StoreError::Io { .. }), "{refused}");
        let failure = read(&theirs, key).await.expect_err("refused");
        assert!(
            matches!(failure, ReadFailure::Corrupt(Damage::Unreadable { .. })),
            "{failure}"
        );
        assert!(
            endpoint
                .folder()
                .join("spill/results/items")
                .join(key.as_str())
                .exists()
        );
    });
}

/// Many replicas at once: each item under its own name, and a sweep beside them loses none.
#[test]
fn replicas_store_and_sweep_at_the_same_time() {
    both(async |objects| {
        let replicas: Vec<ObjectSpillStore> = (0..4).map(|_| store(&objects)).collect();
        let work = replicas
            .iter()
            .enumerate()
            .map(|(replica, store)| async move {
                let mut keys = Vec::new();
                for round in 0..5 {
                    let content = format!("{replica} {round} ").repeat(1_000);
                    keys.push((keep(store, content.clone()).await, content));
                    store.sweep(NOW).await.expect("a sweep");
                }
                keys
            });
        let stored = futures::future::join_all(work).await;
        let reader = store(&objects);
        for (key, content) in stored.into_iter().flatten() {
            assert_eq!(read(&reader, key).await, Ok(content.into_bytes()));
        }
    });
}
