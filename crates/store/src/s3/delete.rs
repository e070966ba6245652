//! `delete`.

use http::Method;

use super::S3;
use super::conditions::on_write;
use super::head::object_target;
use crate::encode::Query;
use crate::exchange::{Exchange, Outgoing};
use crate::{Condition, Error, ErrorKind, ObjectId, Operation};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    on_write(Outgoing::new(Method::DELETE, object_target(id, &Query::new())), condition)
}

impl S3 {
    pub(crate) async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(exchange.error(ErrorKind::Invalid, "what must be absent can't be deleted"));
        }
        let outgoing = request(id, condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(_) => Ok(()),
            // An attempt whose answer was lost has deleted it.
            Err(error) if error.is_not_found() && error.is_uncertain() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn a_delete_may_be_bound_to_a_tag() {
        let condition = Condition::Matches(Version::ETag("e".into()));
        let request = request(&ObjectId::new("b", "k"), &condition).expect("a request");
        assert_eq!(request.headers["if-match"], "\"e\"");
        assert_eq!(request.target, "/k");
    }
}
