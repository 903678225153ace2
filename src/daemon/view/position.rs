//! The position in a token, next to an unlock of it.

use serde::Serialize;

use model::{Position, Token, phrase};

/// A position for readers who may see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PositionView {
    /// Tokens.
    pub amount: f64,
    /// USD at the reference price. `None` without a price.
    pub value: Option<f64>,
    pub percent_of_circulating_supply: Option<f64>,
    /// The amount of the unlock divided by the position: 2 means twice the position. `None` without an unlock amount.
    pub unlock_multiple: Option<f64>,
}

impl PositionView {
    /// Returns the position in a token. `None` if the token has none, or if the reader must not see it: the caller then left it out of the
    /// token. `price` is in USD, and `unlock_amount` in tokens.
    #[must_use]
    pub fn of(token: &Token, price: Option<f64>, unlock_amount: Option<f64>) -> Option<Self> {
        let position: Position = token.position?;
        let implied = || Some(token.market_cap()? / price.filter(|price| *price > 0.0)?);
        let circulating = token.item.circulating_supply.copied().or_else(implied);
        Some(Self {
            amount: position.amount(),
            value: price.map(|price| position.value(price)),
            percent_of_circulating_supply: circulating.and_then(|supply| position.percent_of(supply)),
            unlock_multiple: unlock_amount.and_then(|amount| position.unlock_multiple(amount)),
        })
    }

    /// Returns the value as text, or the tokens without a price.
    #[must_use]
    pub fn size(&self, symbol: &str) -> String {
        phrase::size(self.value, Some(self.amount), Some(symbol))
    }

    /// Returns the size of the unlock as a multiple of the position: `24×`. `None` without an unlock amount.
    #[must_use]
    pub fn multiple(&self) -> Option<String> {
        self.unlock_multiple.map(phrase::multiple)
    }

    /// Returns the amount and its share of the circulating supply as text.
    #[must_use]
    pub fn details(&self, symbol: &str) -> String {
        let share = self.percent_of_circulating_supply;
        let share = share.map(|percent| format!(", {} of circulating supply", phrase::percent(percent))).unwrap_or_default();
        format!("{}{share}", phrase::tokens(self.amount, Some(symbol)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TokenId;

    #[test]
    fn position_is_compared_with_the_unlock_and_the_circulating_supply() {
        let mut token = Token::unknown(TokenId::from("arbitrum"));
        assert_eq!(PositionView::of(&token, Some(2.0), Some(10.0)), None, "no position");
        token.position = Position::of(500.0);
        token.item.market_cap = 100_000.0.into();
        let view = PositionView::of(&token, Some(2.0), Some(1250.0)).expect("a position");
        assert_eq!(view.value, Some(1000.0));
        assert_eq!(view.percent_of_circulating_supply, Some(1.0), "500 of 100,000 / 2 tokens");
        assert_eq!(view.multiple().as_deref(), Some("2.5×"));
        token.item.circulating_supply = 10_000.0.into();
        let unpriced = PositionView::of(&token, None, None).expect("a position");
        assert_eq!((unpriced.value, unpriced.percent_of_circulating_supply), (None, Some(5.0)));
        assert_eq!((unpriced.multiple(), unpriced.size("ARB").as_str()), (None, "500 ARB"));
    }
}
