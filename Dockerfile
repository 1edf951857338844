FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
COPY config ./config
COPY scripts ./scripts
COPY src ./src
RUN npm run build
# What Node makes of it, for the file system may be read-only where it runs. Kept by user, hence as the one that it runs as.
RUN install -d -o 1000 -g 1000 cache
USER 1000:1000
RUN node scripts/fill-cache.ts

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="Tidegate" \
      org.opencontainers.image.description="An HTTP reverse proxy that learns an upstream's limit, paces and shares it, and retries only what is safe to retry." \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY package.json LICENSE ./
COPY config ./config
COPY --from=build /app/dist ./dist
COPY --from=build --chown=0:0 /app/cache ./cache

# By number, so that Kubernetes' runAsNonRoot can tell.
USER 1000:1000
# Proxy; admin; telemetry, where the config asks for it.
EXPOSE 8080 9901 9464
STOPSIGNAL SIGTERM

# Alive when any of these ports of 127.0.0.1 answers /livez: that of TIDEGATE_ADMIN, 9901 (admin), 9464 (telemetry). It
# does not read the config: where that has them elsewhere, override HEALTHCHECK.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "const ports = [(process.env.TIDEGATE_ADMIN || ':9901').split(':').pop(), 9901, 9464]; Promise.any(ports.map(async (port) => { const { ok } = await fetch(`http://127.0.0.1:${port}/livez`); if (!ok) throw new Error(); })).catch(() => process.exit(1))"]

# Told nothing, it exits with 2: a forgotten mount must not look like a proxy.
ENTRYPOINT ["node", "/app/dist/main.js"]
