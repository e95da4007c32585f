"""How an episode begins: the graph, the asteroids and the market, drawn in a fixed order."""

from hotloop.worlds.prospector.numbers import (
    CLUSTER,
    COMMODITIES,
    FARTHEST,
    HAZARD,
    PRICE_BASE,
    PRICE_MAX,
    PRICE_MIN,
    STATION,
    F,
    Stream,
    clamp,
    sin,
)
from hotloop.worlds.prospector.state import Asteroid, Edge, Market, Node, Ship, State


def begin(stream: Stream, time_max: int) -> State:
    """Draw a world."""
    nodes = draw_nodes(stream)
    draw_edges(stream, nodes)
    count_steps(nodes)
    for node in nodes[1:]:
        node.asteroids = [draw_asteroid(stream) for _ in range(stream.between(5, 17))]
    nodes[0].visited = True
    return State(ship=Ship(time=time_max), market=draw_market(stream), nodes=nodes)


def draw_nodes(stream: Stream) -> list[Node]:
    count = stream.between(8, 33)
    nodes = [Node(kind=STATION, hazard=F(0), pirate=F(0))]
    for _ in range(1, count):
        dangerous = stream.unit() < F(0.25)
        hazard, pirate = stream.uniform(0.05, 0.35), stream.uniform(0.05, 0.30)
        if dangerous:
            hazard, pirate = hazard + F(0.25), pirate + F(0.12)
        nodes.append(Node(kind=HAZARD if dangerous else CLUSTER, hazard=hazard, pirate=pirate))
    return nodes


def draw_edges(stream: Stream, nodes: list[Node]) -> None:
    """A tree, then as many ways more as there are nodes, where they fit."""
    for i in range(1, len(nodes)):
        connect(stream, nodes, i, stream.between(0, i))
    for _ in nodes:
        u, v = stream.between(0, len(nodes)), stream.between(0, len(nodes))
        if u != v:
            connect(stream, nodes, u, v)


def connect(stream: Stream, nodes: list[Node], u: int, v: int) -> None:
    """Nothing is drawn where there is a way already or no slot is free."""
    one, other = nodes[u], nodes[v]
    exists = any(edge and edge.to == v for edge in one.edges)
    if exists or None not in one.edges or None not in other.edges:
        return
    time, fuel = stream.between(1, 9), stream.uniform(20, 112)
    dangers = F(0.5) * (one.hazard + other.hazard) + F(0.5) * (one.pirate + other.pirate)
    threat = clamp(dangers + stream.normal(0, 0.05), 0, 1)
    for node, to in ((one, v), (other, u)):
        node.edges[node.edges.index(None)] = Edge(to=to, time=time, fuel=fuel, threat=threat, estimate=F(0.5))


def count_steps(nodes: list[Node]) -> None:
    """Breadth first from the station."""
    nodes[0].steps = 0
    reached = [nodes[0]]
    for node in reached:
        for edge in node.edges:
            if edge and edge.to != 0 and nodes[edge.to].steps == FARTHEST:
                nodes[edge.to].steps = node.steps + 1
                reached.append(nodes[edge.to])


def draw_asteroid(stream: Stream) -> Asteroid:
    """Twenty draws."""
    composition = stream.dirichlet()
    richness = clamp(stream.lognormal(-0.2, 0.65), 0.2, 4)
    stability = stream.beta32()
    noise = stream.uniform(0.04, 0.22)
    return Asteroid(
        composition=composition,
        richness=richness,
        stability=stability,
        noise=noise,
        estimate=stream.dirichlet(),
        estimated_stability=F(0.5),
        confidence=F(0.1),
        depletion=F(0),
    )


def draw_market(stream: Stream) -> Market:
    market = Market()
    for c in range(COMMODITIES):
        market.inventory[c] = stream.uniform(20, 120)
        market.phase[c] = stream.uniform(0, 6.2831853)
        market.period[c] = stream.uniform(180, 380)
        market.amplitude[c] = PRICE_BASE[c] * stream.uniform(0.10, 0.30)
        price = PRICE_BASE[c] + market.amplitude[c] * sin(market.phase[c])
        market.price[c] = market.previous[c] = clamp(price, PRICE_MIN[c], PRICE_MAX[c])
    return market
