/** What Tidegate has to reach at a service. */
export type ServiceGoal =
  | { readonly figure: 'goodput'; readonly atLeast: number }
  | { readonly figure: 'waitP99' | 'abandoned'; readonly atMost: number };

export type ServiceFigures = Readonly<Record<ServiceGoal['figure'], number>>;

/** Compares the exact figure; NaN meets no goal. */
export function isGoalMet(goal: ServiceGoal, figures: ServiceFigures): boolean {
  const figure = figures[goal.figure];
  return 'atLeast' in goal ? figure >= goal.atLeast : figure <= goal.atMost;
}

/** Formats a figure rounded away from its goal: goodput down, waits and shares up. */
export function formatFigure(name: ServiceGoal['figure'], figure: number): string {
  if (!Number.isFinite(figure)) return '–';
  switch (name) {
    case 'goodput':
      return (Math.floor(1000 * figure) / 1000).toFixed(3);
    case 'waitP99':
      return `${Math.ceil(figure)} ms`;
    case 'abandoned':
      return `${(Math.ceil(1000 * figure) / 10).toFixed(1)} %`;
  }
}

export function formatGoal(goal: ServiceGoal): string {
  const [sign, bound] = 'atLeast' in goal ? ['≥', goal.atLeast] : ['≤', goal.atMost];
  const { figure } = goal;
  switch (figure) {
    case 'goodput':
      return `goodput ${sign} ${bound}`;
    case 'waitP99':
      return `p99 of the wait at the service ${sign} ${bound} ms`;
    case 'abandoned':
      return `abandoned ${sign} ${100 * bound} %`;
  }
}
