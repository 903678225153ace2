//! Runs the service on its addresses until it is stopped or a listener fails.

use std::{future::Future, net::SocketAddr};

use tokio_util::sync::CancellationToken;

use crate::{Service, ServiceError, Tls, http::blocking, listener};

/// The bound addresses, with the actual ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundAddresses {
    pub address: SocketAddr,
    /// The address of the legacy base URL.
    pub legacy: Option<SocketAddr>,
}

/// The requested addresses of a service.
#[derive(Clone, Debug)]
pub struct Listening {
    pub address: SocketAddr,
    /// The address of the legacy base URL, which is off by default.
    pub legacy: Option<SocketAddr>,
    /// If set, both addresses accept only HTTPS.
    pub tls: Option<Tls>,
}

/// Binds the addresses, passes them to `bound`, and serves until `stop` resolves.
///
/// # Errors
///
/// Fails if an address cannot be bound or a listener fails.
pub async fn listen(
    service: &Service,
    listening: Listening,
    bound: impl FnOnce(BoundAddresses),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let Listening { address, legacy, tls } = listening;
    let bind = |address: SocketAddr| {
        let listener = listener::bind(address).map_err(|source| ServiceError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServiceError::Listen { address, source })?;
        Ok::<_, ServiceError>((listener, address))
    };
    let (main, address) = bind(address)?;
    let older = match legacy {
        Some(legacy) => Some(bind(legacy)?),
        None => None,
    };
    bound(BoundAddresses { address, legacy: older.as_ref().map(|(_, address)| *address) });
    let stopping = CancellationToken::new();
    // If one server fails, the other stops too.
    let run = async |listener, router| {
        let result = listener::serve_tls(listener, router, tls.clone(), stopping.clone().cancelled_owned()).await;
        stopping.cancel();
        result.map_err(ServiceError::Serve)
    };
    let older = async {
        match older {
            Some((listener, _)) => run(listener, service.legacy_router()).await,
            None => Ok(()),
        }
    };
    let servers = async { tokio::join!(run(main, service.router()), older) };
    let mut servers = std::pin::pin!(servers);
    let (main, older) = tokio::select! {
        results = &mut servers => results,
        () = stop => {
            stopping.cancel();
            servers.await
        }
    };
    let stopped = service.clone();
    if let Err(refusal) = blocking(move || Ok(stopped.0.key_gate.finish()?)).await {
        tracing::warn!(reason = refusal.message, "the usage file has credits that the database does not have");
    }
    main.and(older)
}
