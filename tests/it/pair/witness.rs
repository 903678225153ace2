//! A witness in the database: triggers that compare the login of each writing transaction with the holder of the lease. Each machine has a
//! login of its own. No code of the program takes part.

use crate::it::support::Cluster;

/// The tables that only the active instance writes in this test.
const TABLES: [&str; 7] = ["poll", "alert", "change", "notification", "delivery", "delivery_notification", "attempt"];

/// The function runs with the permissions of its owner, so that the instances cannot change what it records. A sequence counts without
/// conflicts between transactions.
const FUNCTION: &str = "
CREATE SCHEMA witness;
CREATE SEQUENCE witness.one;
CREATE SEQUENCE witness.two;
CREATE TABLE witness.breach (at TIMESTAMPTZ, login TEXT, lease BIGINT, holder TEXT, what TEXT);
CREATE FUNCTION witness.compare() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE held RECORD;
BEGIN
    PERFORM nextval('witness.' || session_user);
    SELECT number, holder INTO held FROM lease;
    IF split_part(held.holder, ':', 1) <> session_user THEN
        INSERT INTO witness.breach VALUES (clock_timestamp(), session_user, held.number, held.holder, TG_OP || ' ' || TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END $$;";

/// Lets each machine log in under its name, as the owner of the tables.
pub fn create_logins(cluster: &Cluster) {
    cluster.query("CREATE ROLE cliffwatch");
    for login in ["one", "two"] {
        cluster.query(&format!("CREATE ROLE {login} LOGIN IN ROLE cliffwatch"));
        cluster.query(&format!("ALTER ROLE {login} SET role = cliffwatch"));
    }
    cluster.query("GRANT ALL ON SCHEMA public TO cliffwatch");
}

/// Begins to observe, once the tables exist.
pub fn observe(cluster: &Cluster) {
    let triggers = TABLES.map(|table| {
        format!(
            "CREATE TRIGGER witness AFTER INSERT OR UPDATE ON public.{table} FOR EACH STATEMENT EXECUTE FUNCTION witness.compare();"
        )
    });
    cluster.query(&format!("{FUNCTION} {}", triggers.concat()));
    let count = cluster.query("SELECT count(*) FROM pg_trigger WHERE tgname = 'witness'");
    assert_eq!(count, TABLES.len().to_string(), "the triggers exist");
}

/// The number of statements of each machine that were observed.
pub fn statements(cluster: &Cluster) -> [u64; 2] {
    ["one", "two"]
        .map(|login| cluster.query(&format!("SELECT last_value FROM witness.{login} WHERE is_called")).parse().unwrap_or(0))
}

/// The writes of a machine that did not hold the lease.
pub fn breaches(cluster: &Cluster) -> Vec<String> {
    let sql = "SELECT at || ': ' || login || ' did ' || what || ' under lease ' || lease || ' of ' || holder FROM witness.breach";
    cluster.query(sql).lines().map(str::to_owned).collect()
}
