/** The kinds of `DeliveryState`, in the order in which a delivery passes through them. */
export const DELIVERY_STATES = ['waiting', 'sending', 'delivered', 'dead', 'canceled', 'unknown'] as const;
