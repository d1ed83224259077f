//! A page of a list whose objects are reduced one by one while the text is parsed.
//!
//! 100 Deployments are 3 MB of text, and parsed completely several times as much.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;

use futures_util::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

/// Requests a page, and returns its text in the given buffer.
///
/// A task of its own reads it, on the threads of the connection. Otherwise another thread would be woken for
/// each part of 16 KiB. `Client::request_text` would have the text three times.
pub(super) async fn text(
    client: Client,
    request: Request<Vec<u8>>,
    mut buffer: Vec<u8>,
) -> kube::Result<Vec<u8>> {
    // The set ends the task if nobody waits for it any more.
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut stream = pin!(client.request_stream(request).await?);
        read(&mut stream, &mut buffer).await.map_err(kube::Error::ReadEvents)?;
        Ok(buffer)
    });
    match task.join_next().await {
        Some(Ok(read)) => read,
        Some(Err(ended)) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(ended) => Err(kube::Error::ReadEvents(std::io::Error::other(ended))),
        },
        None => Err(kube::Error::ReadEvents(std::io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Reads a page as text.
///
/// `read_to_end` would overwrite the rest of the buffer for each part that arrives: a fifth of the CPU time
/// of a run beside 10,000 OSDs.
async fn read(stream: &mut (impl AsyncBufRead + Unpin), text: &mut Vec<u8>) -> std::io::Result<()> {
    text.clear();
    loop {
        let part = stream.fill_buf().await?;
        if part.is_empty() {
            return Ok(());
        }
        text.extend_from_slice(part);
        let length = part.len();
        stream.consume_unpin(length);
    }
}

/// Parses a page, and returns what `project` makes of its objects, and the token of the next page.
pub(super) fn parse<I, T>(
    text: &[u8],
    mut project: impl FnMut(I) -> Option<T>,
) -> serde_json::Result<(Vec<T>, Option<String>)>
where
    I: for<'de> Deserialize<'de>,
{
    let (mut all, mut next) = (Vec::new(), None);
    let take = |object: I| all.extend(project(object));
    let mut parser = serde_json::Deserializer::from_slice(text);
    parser.deserialize_map(Page { next: &mut next, take, of: PhantomData })?;
    parser.end()?;
    Ok((all, next.filter(|token: &String| !token.is_empty())))
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

struct Page<'n, I, F> {
    next: &'n mut Option<String>,
    take: F,
    of: PhantomData<I>,
}

impl<'de, I: Deserialize<'de>, F: FnMut(I)> Visitor<'de> for Page<'_, I, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of Kubernetes")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<(), M::Error> {
        let mut has_items = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => *self.next = map.next_value::<ListMetadata>()?.next,
                "items" => {
                    has_items = true;
                    map.next_value_seed(Items { take: &mut self.take, of: PhantomData })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_items { Ok(()) } else { Err(de::Error::missing_field("items")) }
    }
}

/// Objects of a page; `null` stands for none, as Go writes an empty list.
struct Items<'f, I, F> {
    take: &'f mut F,
    of: PhantomData<I>,
}

impl<'de, I: Deserialize<'de>, F: FnMut(I)> DeserializeSeed<'de> for Items<'_, I, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de, I: Deserialize<'de>, F: FnMut(I)> Visitor<'de> for Items<'_, I, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects of a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        while let Some(object) = list.next_element()? {
            (self.take)(object);
        }
        Ok(())
    }
}

/// An object as it is on the wire, without `managedFields`, which are a third of a Deployment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Parts")]
pub(crate) struct Raw(pub(crate) Value);

#[derive(Deserialize)]
struct Parts {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

impl From<Parts> for Raw {
    fn from(parts: Parts) -> Self {
        let Parts { metadata: Metadata(metadata), spec, status } = parts;
        let parts = [("metadata", Value::Object(metadata)), ("spec", spec), ("status", status)];
        Self(parts.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
    }
}

struct Metadata(Map<String, Value>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(parser: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metadata of an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Metadata, M::Error> {
                let mut fields = Map::new();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "managedFields" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        fields.insert(key, map.next_value()?);
                    }
                }
                Ok(Metadata(fields))
            }
        }
        parser.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(list: &Value) -> serde_json::Result<(Vec<Value>, Option<String>)> {
        parse(list.to_string().as_bytes(), |Raw(object)| (object["spec"] != json!(0)).then_some(object))
    }

    #[tokio::test]
    async fn page_is_read_in_parts_until_its_end_or_an_error() {
        use futures_util::{TryStreamExt, stream};
        let of = |parts: Vec<std::io::Result<&'static str>>| stream::iter(parts).into_async_read();
        let mut text = b"of the page before".to_vec();
        read(&mut of(vec![Ok("{\"items\":"), Ok(""), Ok(" []}")]), &mut text).await.unwrap();
        assert_eq!(text, b"{\"items\": []}");
        let cut_off = std::io::Error::other("connection reset");
        let found = read(&mut of(vec![Ok("{"), Err(cut_off)]), &mut text).await;
        assert_eq!(found.unwrap_err().to_string(), "connection reset");
    }

    #[test]
    fn page_of_a_list_is_reduced_and_names_the_next_page() {
        let managed = json!([{"manager": "rook", "fieldsV1": {"f:spec": {}}}]);
        let object = |name: &str, spec: u32| {
            let metadata = json!({"name": name, "managedFields": managed, "labels": {"a": "b"}});
            json!({"metadata": metadata, "spec": spec})
        };
        let items = json!([object("one", 1), object("none", 0), object("two", 2)]);
        let list = json!({"kind": "DeploymentList", "metadata": {"continue": "next"}, "items": items});
        let (found, next) = parsed(&list).unwrap();
        assert_eq!(next.as_deref(), Some("next"));
        let metadata = json!({"name": "one", "labels": {"a": "b"}});
        assert_eq!(found[0], json!({"metadata": metadata, "spec": 1, "status": null}));
        assert_eq!((found.len(), &found[1]["metadata"]["name"]), (2, &json!("two")));
    }

    #[test]
    fn last_page_of_a_list_has_no_next_one() {
        for list in [
            json!({"metadata": {"continue": ""}, "items": []}),
            json!({"metadata": {}, "items": null}),
            json!({"items": [], "metadata": {"resourceVersion": "7"}}),
        ] {
            assert_eq!(parsed(&list).unwrap(), (Vec::new(), None), "{list}");
        }
    }

    #[test]
    fn page_that_is_no_list_is_an_error() {
        for wrong in
            [json!({"metadata": {}}), json!([]), json!({"items": [{"spec": 1}]}), json!({"items": 3})]
        {
            assert!(parsed(&wrong).is_err(), "{wrong}");
        }
        assert!(parse::<Raw, ()>(b"{\"items\": [], ", |_| None).is_err(), "cut off");
    }
}
