//! Deletes the bodies that dead processes have left.
//!
//! A body that no record names may belong to a call in progress, even after a long time: its process may be
//! paused between upload and put. So the record is swapped first, with one more sweep in its count. After
//! that the put of such a call fails, and the call, which sees the count, uploads its body again.

use std::collections::BTreeMap;
use std::time::SystemTime;

use futures_util::TryStreamExt;

use super::{BucketStore, Record, failed};
use crate::ResourceKey;
use crate::store::StoreError;
use crate::store::record::Judged;

impl BucketStore {
    /// Deletes the bodies that no record names and that were uploaded before `before`; returns their number.
    ///
    /// It is safe at any time. A call in progress may have to upload its body again, so choose a time some
    /// minutes ago. Lists all objects under the prefix.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the bucket fails; what is left is found by the next sweep.
    pub async fn sweep(&self, before: SystemTime) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for (key, names) in self.old_bodies(before).await? {
            let (found, _) = self.load(&key).await?;
            let is_left = |name: &String, record: &Record| record.body_name() != Some(name.as_str());
            if !names.iter().any(|name| is_left(name, &found)) {
                continue;
            }
            let count = |record: &mut Record| {
                record.sweeps += 1;
                Judged { outcome: (), is_changed: true }
            };
            let ((), record) = self.swap(&key, None, count).await?;
            for name in names.iter().filter(|name| is_left(name, &record)) {
                self.discard(&key, name).await;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Lists the bodies uploaded before `before`, by key.
    async fn old_bodies(&self, before: SystemTime) -> Result<BTreeMap<ResourceKey, Vec<String>>, StoreError> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.is_root());
        let mut objects = self.bucket.list(prefix);
        let mut bodies = BTreeMap::<_, Vec<_>>::new();
        while let Some(object) = objects.try_next().await.map_err(failed)? {
            let Some(parts) = object.location.prefix_match(&self.prefix) else { continue };
            let parts: Vec<_> = parts.collect();
            let [key, folder, name] = &parts[..] else { continue };
            let Ok(key) = ResourceKey::from_path_segment(key.as_ref()) else { continue };
            if folder.as_ref() == "bodies" && SystemTime::from(object.last_modified) < before {
                bodies.entry(key).or_default().push(name.as_ref().to_owned());
            }
        }
        Ok(bodies)
    }
}
