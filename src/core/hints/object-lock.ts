/** True if `reason` is Stripe's word for a limit on one object, such as updates of one PaymentIntent. */
export function isObjectLockReason(reason: string): boolean {
  return reason.toLowerCase() === 'resource-specific';
}
