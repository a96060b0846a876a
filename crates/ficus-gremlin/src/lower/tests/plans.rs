//! gremlin-lang text and the plan it becomes.

use super::check;

#[test]
fn sources() {
    check(&[
        ("g.V()", "[GraphStep(vertex,[])]"),
        ("g.V(1, 2L)", "[GraphStep(vertex,[1, 2])]"),
        ("g.V([1, 2])", "[GraphStep(vertex,[1, 2])]"),
        ("g.V(null)", "[GraphStep(vertex,[null])]"),
        ("g.E('a').V(3)", "[GraphStep(edge,[a]), GraphStep(vertex,[3])]"),
        ("g.inject(1, [2, 3], null)", "[InjectStep([1, [2, 3], null])]"),
        ("g.io('x.json').with(IO.reader, 'graphson').read()", "[IoStep(read,x.json,{~tinkerpop.io.reader=graphson})]"),
        ("g.io('x.json').write()", "[IoStep(write,x.json)]"),
        ("g.call()", "[CallStep(--list)]"),
        ("g.call('--list').with('verbose')", "[CallStep(--list,{verbose=true})]"),
        ("g.call('s', ['a': 1]).with('b', 2)", "[CallStep(s,{a=1},{b=2})]"),
        ("g.V().call('s', __.out())", "[GraphStep(vertex,[]), CallStep(s,[VertexStep(OUT,vertex)])]"),
        (
            "g.V().call('s', ['a': 1], __.id()).with('b', __.label())",
            "[GraphStep(vertex,[]), CallStep(s,{a=1},[IdStep],{b=[LabelStep]})]",
        ),
        ("g.union(V(), E())", "[UnionStep([[GraphStep(vertex,[])], [GraphStep(edge,[])]])]"),
    ]);
}

#[test]
fn navigation() {
    check(&[
        (
            "g.V().out('a', 'b').in().bothE('c')",
            "[GraphStep(vertex,[]), VertexStep(OUT,[a, b],vertex), VertexStep(IN,vertex), VertexStep(BOTH,[c],edge)]",
        ),
        (
            "g.V().to(OUT, 'a').toE(IN).toV(OUT)",
            "[GraphStep(vertex,[]), VertexStep(OUT,[a],vertex), VertexStep(IN,edge), EdgeVertexStep(OUT)]",
        ),
        ("g.E().outV()", "[GraphStep(edge,[]), EdgeVertexStep(OUT)]"),
        ("g.V().outE().otherV().id()", "[GraphStep(vertex,[]), VertexStep(OUT,edge), EdgeOtherVertexStep, IdStep]"),
        (
            "g.V().values('a').properties()",
            "[GraphStep(vertex,[]), PropertiesStep([a],value), PropertiesStep(property)]",
        ),
        ("g.V().valueMap('a').by(unfold())", "[GraphStep(vertex,[]), PropertyMapStep([a],value,[UnfoldStep])]"),
        ("g.V().valueMap(true)", "[GraphStep(vertex,[]), PropertyMapStep(value,tokens[ids, labels, keys, values])]"),
        (
            "g.V().valueMap().with(WithOptions.tokens)",
            "[GraphStep(vertex,[]), PropertyMapStep(value,tokens[ids, labels, keys, values])]",
        ),
        (
            "g.V().valueMap().with(WithOptions.tokens, WithOptions.ids).with(WithOptions.tokens, WithOptions.labels)",
            "[GraphStep(vertex,[]), PropertyMapStep(value,tokens[ids, labels])]",
        ),
        (
            "g.V().propertyMap().elementMap('a')",
            "[GraphStep(vertex,[]), PropertyMapStep(property), ElementMapStep([a])]",
        ),
        // Null as a key is a key that nothing has.
        ("g.V().values('a', null)", "[GraphStep(vertex,[]), PropertiesStep([a, ],value)]"),
    ]);
}

#[test]
fn has() {
    check(&[
        ("g.V().has('a')", "[GraphStep(vertex,[]), TraversalFilterStep([PropertiesStep([a],value)])]"),
        ("g.V().hasNot('a')", "[GraphStep(vertex,[]), NotStep([PropertiesStep([a],value)])]"),
        (
            "g.V().has('a', 1).has('b', gt(2)).hasLabel('c')",
            "[GraphStep(vertex,[]), HasStep([a.eq(1), b.gt(2), ~label.eq(c)])]",
        ),
        ("g.V().has('person', 'name', 'x')", "[GraphStep(vertex,[]), HasStep([~label.eq(person), name.eq(x)])]"),
        (
            "g.V().has(T.id, 1).has(T.label, within('a', 'b'))",
            "[GraphStep(vertex,[]), HasStep([~id.eq(1), ~label.within([a, b])])]",
        ),
        ("g.V().has('~label', 'a')", "[GraphStep(vertex,[]), HasStep([~label.eq(a)])]"),
        (
            "g.V().hasLabel('a', 'b').hasLabel(startingWith('c'))",
            "[GraphStep(vertex,[]), HasStep([~label.within([a, b]), ~label.startingWith(c)])]",
        ),
        (
            "g.V().hasId(1).hasId(1, 2).hasId([3, 4]).hasId([5], 6).hasId(gt(7))",
            "[GraphStep(vertex,[]), HasStep([~id.eq(1), ~id.within([1, 2]), ~id.within([3, 4]), ~id.within([5, 6]), ~id.gt(7)])]",
        ),
        (
            "g.V().properties().hasKey('a', 'b').hasValue(1)",
            "[GraphStep(vertex,[]), PropertiesStep(property), HasStep([~key.within([a, b]), ~value.eq(1)])]",
        ),
        (
            "g.V().values('a').is(1).is(lt(2))",
            "[GraphStep(vertex,[]), PropertiesStep([a],value), IsStep(eq(1)), IsStep(lt(2))]",
        ),
        (
            "g.V().has(null, 1).has(null)",
            "[GraphStep(vertex,[]), HasStep([.eq(1)]), TraversalFilterStep([PropertiesStep([],value)])]",
        ),
    ]);
}

#[test]
fn filters() {
    check(&[
        (
            "g.V().filter(out()).not(in())",
            "[GraphStep(vertex,[]), TraversalFilterStep([VertexStep(OUT,vertex)]), NotStep([VertexStep(IN,vertex)])]",
        ),
        ("g.V().values('a').filter(gt(1))", "[GraphStep(vertex,[]), PropertiesStep([a],value), IsStep(gt(1))]"),
        (
            "g.inject([1]).all(gt(0)).any(lt(3)).none(eq(2))",
            "[InjectStep([[1]]), AllStep(gt(0)), AnyStep(lt(3)), NoneStep(eq(2))]",
        ),
        ("g.V().discard()", "[GraphStep(vertex,[]), DiscardStep]"),
        (
            "g.V().coin(0.5).sample(2).by('a').timeLimit(9)",
            "[GraphStep(vertex,[]), CoinStep(0.5), SampleGlobalStep(2,value(a)), TimeLimitStep(9)]",
        ),
        (
            "g.V().dedup().dedup('a', 'b').by(T.id)",
            "[GraphStep(vertex,[]), DedupGlobalStep, DedupGlobalStep([a, b],id)]",
        ),
        (
            "g.V().range(1, 2).limit(3).skip(4).tail().tail(5)",
            "[GraphStep(vertex,[]), RangeGlobalStep(1,2), RangeGlobalStep(0,3), RangeGlobalStep(4,-1), TailGlobalStep(1), TailGlobalStep(5)]",
        ),
        (
            "g.inject([1]).range(local, 1, 2).limit(local, 3).skip(local, 4).tail(local).sample(local, 5).dedup(local)",
            "[InjectStep([[1]]), RangeLocalStep(1,2), RangeLocalStep(0,3), RangeLocalStep(4,-1), TailLocalStep(1), SampleLocalStep(5), DedupLocalStep]",
        ),
        (
            "g.V().out().simplePath().from('a').to('b').by('c')",
            "[GraphStep(vertex,[]), VertexStep(OUT,vertex), PathFilterStep(simple,from:a,to:b,[value(c)])]",
        ),
        ("g.V().cyclicPath()", "[GraphStep(vertex,[]), PathFilterStep(cyclic)]"),
    ]);
}

#[test]
fn infix_connectives() {
    check(&[
        (
            "g.V().has('a').or().has('b')",
            "[GraphStep(vertex,[]), OrStep([[TraversalFilterStep([PropertiesStep([a],value)])], [TraversalFilterStep([PropertiesStep([b],value)])]])]",
        ),
        // and binds tighter.
        (
            "g.V().out().and().in().or().both().and().id()",
            "[GraphStep(vertex,[]), OrStep([[AndStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex)]])], [AndStep([[VertexStep(BOTH,vertex)], [IdStep]])]])]",
        ),
        // What brings traversers in stays in front, with its labels.
        (
            "g.V().as('x').out().and().in()",
            "[GraphStep(vertex,[])@[x], AndStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex)]])]",
        ),
        (
            "g.inject(1).is(1).or().is(2).inject(3).id().or().label()",
            "[InjectStep([1]), OrStep([[IsStep(eq(1))], [IsStep(eq(2))]]), InjectStep([3]), OrStep([[IdStep], [LabelStep]])]",
        ),
        // Without their strategy they are tests of nothing.
        (
            "g.withoutStrategies(ConnectiveStrategy).V().has('a').or().where(out().and())",
            "{strategies=[without(ConnectiveStrategy)]} [GraphStep(vertex,[]), TraversalFilterStep([PropertiesStep([a],value)]), OrStep([]), TraversalFilterStep([VertexStep(OUT,vertex), AndStep([])])]",
        ),
        (
            "g.withoutStrategies(ConnectiveStrategy).withStrategies(ConnectiveStrategy).V().out().or().in()",
            "{strategies=[ConnectiveStrategy]} [GraphStep(vertex,[]), OrStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex)]])]",
        ),
        // A mid-traversal V() is a step like any other.
        (
            "g.V().filter(V().or().out())",
            "[GraphStep(vertex,[]), TraversalFilterStep([OrStep([[GraphStep(vertex,[])], [VertexStep(OUT,vertex)]])])]",
        ),
        // Sides without steps yield nothing: of TinkerPop's server the second lets three vertices of the modern graph through, and the first fails.
        ("g.V().filter(or())", "[GraphStep(vertex,[]), TraversalFilterStep([OrStep([])])]"),
        (
            "g.V().filter(out().or())",
            "[GraphStep(vertex,[]), TraversalFilterStep([OrStep([[VertexStep(OUT,vertex)]])])]",
        ),
        // With arguments they are steps.
        (
            "g.V().and(out(), in().or(id()))",
            "[GraphStep(vertex,[]), AndStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex), OrStep([[IdStep]])]])]",
        ),
    ]);
}

#[test]
fn where_with_predicates() {
    check(&[
        (
            "g.V().as('a').out().where(eq('a'))",
            "[GraphStep(vertex,[])@[a], VertexStep(OUT,vertex), WherePredicateStep(eq(a))]",
        ),
        (
            "g.V().as('a').out().as('b').where('a', neq('b').and(within('c', 'd'))).by('x').by(T.id)",
            "[GraphStep(vertex,[])@[a], VertexStep(OUT,vertex)@[b], WherePredicateStep(a,and(neq(b), within([c, d])),[value(x), id])]",
        ),
        ("g.V().where(startingWith('a').negate())", "[GraphStep(vertex,[]), WherePredicateStep(notStartingWith(a))]"),
    ]);
}

#[test]
fn where_with_traversals() {
    check(&[
        ("g.V().where(out())", "[GraphStep(vertex,[]), TraversalFilterStep([VertexStep(OUT,vertex)])]"),
        (
            "g.V().where(as('a').out())",
            "[GraphStep(vertex,[]), WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex)])]",
        ),
        (
            "g.V().where(out().as('b'))",
            "[GraphStep(vertex,[]), WhereTraversalStep([WhereStartStep, VertexStep(OUT,vertex), WhereEndStep(b)])]",
        ),
        (
            "g.V().where(as('a').out().as('b'))",
            "[GraphStep(vertex,[]), WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex), WhereEndStep(b)])]",
        ),
        ("g.V().where(as('a'))", "[GraphStep(vertex,[]), WhereTraversalStep([WhereStartStep(a)])]"),
        (
            "g.V().where(not(as('a').out().as('b')))",
            "[GraphStep(vertex,[]), TraversalFilterStep([NotStep([WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex), WhereEndStep(b)])])])]",
        ),
        (
            "g.V().where(and(as('a').out(), or(in().as('b'), id())))",
            "[GraphStep(vertex,[]), TraversalFilterStep([AndStep([[WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex)])], [OrStep([[WhereTraversalStep([WhereStartStep, VertexStep(IN,vertex), WhereEndStep(b)])], [IdStep]])]])])]",
        ),
        // A label behind the connective belongs to its right-hand side.
        (
            "g.V().where(as('a').out().and().as('b').in())",
            "[GraphStep(vertex,[]), TraversalFilterStep([AndStep([[WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex)])], [WhereTraversalStep([WhereStartStep(b), VertexStep(IN,vertex)])]])])]",
        ),
        // Two labels at the start are labels as anywhere else.
        (
            "g.V().where(as('a', 'b').out())",
            "[GraphStep(vertex,[]), TraversalFilterStep([IdentityStep@[a, b], VertexStep(OUT,vertex)])]",
        ),
        // Elsewhere, a label at the start names what comes in.
        (
            "g.V().map(as('a').out().select('a'))",
            "[GraphStep(vertex,[]), TraversalMapStep([IdentityStep@[a], VertexStep(OUT,vertex), SelectOneStep(last,a)])]",
        ),
    ]);
}

#[test]
fn match_patterns() {
    check(&[
        (
            "g.V().match(as('a').out().as('b'), as('b').in())",
            "[GraphStep(vertex,[]), MatchStep(AND,[[MatchStartStep(a), VertexStep(OUT,vertex), MatchEndStep(b)], [MatchStartStep(b), VertexStep(IN,vertex), MatchEndStep]])]",
        ),
        (
            "g.V().match(as('a').out().or().as('a').in().and().as('b').id())",
            "[GraphStep(vertex,[]), MatchStep(AND,[MatchStep(OR,[[MatchStartStep(a), VertexStep(OUT,vertex), MatchEndStep], MatchStep(AND,[[MatchStartStep(a), VertexStep(IN,vertex), MatchEndStep], [MatchStartStep(b), IdStep, MatchEndStep]])])])]",
        ),
        (
            "g.V().match(not(as('a').out().as('b')), and(as('a').in(), or(as('a').id())))",
            "[GraphStep(vertex,[]), MatchStep(AND,[not([MatchStartStep(a), VertexStep(OUT,vertex), MatchEndStep(b)]), MatchStep(AND,[[MatchStartStep(a), VertexStep(IN,vertex), MatchEndStep], MatchStep(OR,[[MatchStartStep(a), IdStep, MatchEndStep]])])])]",
        ),
        (
            "g.V().match(where('a', neq('b')).by('x'), where(as('a').out().as('c')))",
            "[GraphStep(vertex,[]), MatchStep(AND,[where([a, b])[WherePredicateStep(a,neq(b),[value(x)])], where([a, c])[WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex), WhereEndStep(c)])]])]",
        ),
        (
            "g.V().match(where(and(as('a').out(), as('b').in())))",
            "[GraphStep(vertex,[]), MatchStep(AND,[where([a, b])[TraversalFilterStep([AndStep([[WhereTraversalStep([WhereStartStep(a), VertexStep(OUT,vertex)])], [WhereTraversalStep([WhereStartStep(b), VertexStep(IN,vertex)])]])])]])]",
        ),
        // What follows a where() starts where it started.
        (
            "g.V().match(where('a', neq('b')).out().as('c'))",
            "[GraphStep(vertex,[]), MatchStep(AND,[[MatchStartStep(a), WherePredicateStep(neq(b)), VertexStep(OUT,vertex), MatchEndStep(c)]])]",
        ),
    ]);
}

#[test]
fn maps() {
    check(&[
        (
            "g.V().map(out()).flatMap(in()).local(id()).sideEffect(label())",
            "[GraphStep(vertex,[]), TraversalMapStep([VertexStep(OUT,vertex)]), TraversalFlatMapStep([VertexStep(IN,vertex)]), LocalStep([IdStep]), TraversalSideEffectStep([LabelStep])]",
        ),
        (
            "g.V().constant(null).identity().unfold()",
            "[GraphStep(vertex,[]), ConstantStep(null), IdentityStep, UnfoldStep]",
        ),
        (
            "g.V().as('a').path().from('a').by('x').by()",
            "[GraphStep(vertex,[])@[a], PathStep(from:a,[value(x), identity])]",
        ),
        (
            "g.V().project('a', 'b').by(T.label).by(out().count())",
            "[GraphStep(vertex,[]), ProjectStep([a, b],[label, [VertexStep(OUT,vertex), CountGlobalStep]])]",
        ),
        (
            "g.V().select('a').select(first, 'a', 'b').by('x').select(keys)",
            "[GraphStep(vertex,[]), SelectOneStep(last,a), SelectStep(first,[a, b],[value(x)]), TraversalMapStep(keys)]",
        ),
        (
            "g.V().select(id()).by('x').select(all, label())",
            "[GraphStep(vertex,[]), TraversalSelectStep([IdStep],value(x)), TraversalSelectStep(all,[LabelStep])]",
        ),
        ("g.V().select('a').by('x').by('y')", "[GraphStep(vertex,[]), SelectOneStep(last,a,[value(y)])]"),
        (
            "g.withSack(1, sum).V().sack(mult).by('x').sack()",
            "{sack=1,merge:sum} [GraphStep(vertex,[]), SackValueStep(mult,value(x)), SackStep]",
        ),
        (
            "g.V().math('_ + a').by('x').format('%{a}').loops()",
            "[GraphStep(vertex,[]), MathStep(_ + a,[value(x)]), FormatStep(%{a}), LoopsStep]",
        ),
        (
            "g.V().order().order().by('a').by(T.id, desc).by(out().count(), asc).by(shuffle)",
            "[GraphStep(vertex,[]), OrderGlobalStep([[identity, asc]]), OrderGlobalStep([[value(a), asc], [id, desc], [[VertexStep(OUT,vertex), CountGlobalStep], asc], [identity, shuffle]])]",
        ),
        (
            "g.V().groupCount().order(local).by(values, desc)",
            "[GraphStep(vertex,[]), GroupCountStep, OrderLocalStep([[values, desc]])]",
        ),
    ]);
}

#[test]
fn scalar_functions() {
    check(&[
        (
            "g.V().asString().toLower(local).toUpper().trim().lTrim().rTrim(local).length().reverse()",
            "[GraphStep(vertex,[]), AsStringGlobalStep, ToLowerLocalStep, ToUpperGlobalStep, TrimGlobalStep, LTrimGlobalStep, RTrimLocalStep, LengthGlobalStep, ReverseStep]",
        ),
        (
            "g.V().replace('a', null).split(local, ',').substring(1).substring(local, 1, 2)",
            "[GraphStep(vertex,[]), ReplaceGlobalStep(a,null), SplitLocalStep(,), SubstringGlobalStep(1), SubstringLocalStep(1,2)]",
        ),
        (
            "g.V().concat('a', null).concat(out(), in()).concat()",
            "[GraphStep(vertex,[]), ConcatStep([a, null]), ConcatStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex)]]), ConcatStep]",
        ),
        (
            "g.V().conjoin(',').combine([1]).difference(out().fold()).merge(null).product([2])",
            "[GraphStep(vertex,[]), ConjoinStep(,), CombineStep([1]), DifferenceStep([VertexStep(OUT,vertex), FoldStep]), MergeStep(null), ProductStep([2])]",
        ),
        (
            "g.V().asNumber().asNumber(GType.INT).asBool().asDate().dateAdd(DT.day, 2)",
            "[GraphStep(vertex,[]), AsNumberStep, AsNumberStep(INT), AsBoolStep, AsDateStep, DateAddStep(day,2)]",
        ),
        ("g.V().dateDiff(id())", "[GraphStep(vertex,[]), DateDiffStep([IdStep])]"),
        (
            "g.V().index().index().with(WithOptions.indexer, WithOptions.map)",
            "[GraphStep(vertex,[]), IndexStep(list), IndexStep(map)]",
        ),
        (
            "g.V().count(local).sum(local).min(local).max(local).mean(local)",
            "[GraphStep(vertex,[]), CountLocalStep, SumLocalStep, MinLocalStep, MaxLocalStep, MeanLocalStep]",
        ),
    ]);
}

#[test]
fn reductions_and_side_effects() {
    check(&[
        ("g.V().count()", "[GraphStep(vertex,[]), CountGlobalStep]"),
        (
            "g.V().sum(global).min().max().mean()",
            "[GraphStep(vertex,[]), SumGlobalStep, MinGlobalStep, MaxGlobalStep, MeanGlobalStep]",
        ),
        ("g.V().fold().fold(0, sum)", "[GraphStep(vertex,[]), FoldStep, FoldStep(0,sum)]"),
        (
            "g.V().group().by('a').by(count()).group('x')",
            "[GraphStep(vertex,[]), GroupStep(value(a),[CountGlobalStep]), GroupSideEffectStep(x,identity,identity)]",
        ),
        (
            "g.V().groupCount('x').by(T.label).groupCount()",
            "[GraphStep(vertex,[]), GroupCountSideEffectStep(x,label), GroupCountStep]",
        ),
        (
            "g.V().tree('x').by('a').by('b').tree()",
            "[GraphStep(vertex,[]), TreeSideEffectStep(x,[value(a), value(b)]), TreeStep]",
        ),
        (
            "g.V().barrier().barrier(9).barrier(normSack)",
            "[GraphStep(vertex,[]), NoOpBarrierStep, NoOpBarrierStep(9), LambdaCollectingBarrierStep(normSack)]",
        ),
        (
            "g.V().aggregate('x').by('a').local(aggregate('y')).cap('x', 'y')",
            "[GraphStep(vertex,[]), AggregateStep(x,value(a)), LocalStep([AggregateStep(y)]), SideEffectCapStep([x, y])]",
        ),
        ("g.E().subgraph('s').fail('no')", "[GraphStep(edge,[]), SubgraphStep(s), FailStep(no)]"),
        ("g.V().profile()", "[GraphStep(vertex,[]), ProfileSideEffectStep]"),
        ("g.V().profile('x').cap('x')", "[GraphStep(vertex,[]), ProfileSideEffectStep(x), SideEffectCapStep([x])]"),
    ]);
}

#[test]
fn branches() {
    check(&[
        (
            "g.V().union(out(), in()).coalesce(id(), label()).optional(out())",
            "[GraphStep(vertex,[]), UnionStep([[VertexStep(OUT,vertex)], [VertexStep(IN,vertex)]]), CoalesceStep([[IdStep], [LabelStep]]), OptionalStep([VertexStep(OUT,vertex)])]",
        ),
        (
            "g.V().choose(out(), id())",
            "[GraphStep(vertex,[]), ChooseStep(hasNext([VertexStep(OUT,vertex)]),[eq(true)->[IdStep], eq(false)->[]])]",
        ),
        (
            "g.V().choose(gt(1), id(), label())",
            "[GraphStep(vertex,[]), ChooseStep(hasNext([IsStep(gt(1))]),[eq(true)->[IdStep], eq(false)->[LabelStep]])]",
        ),
        (
            "g.V().choose(T.label).option('a', out()).option(gt(1), in()).option(Pick.none, id()).option(Pick.unproductive, label())",
            "[GraphStep(vertex,[]), ChooseStep([LabelStep],[none->[IdStep], unproductive->[LabelStep], eq(a)->[VertexStep(OUT,vertex)], gt(1)->[VertexStep(IN,vertex)]])]",
        ),
        // The first default counts.
        (
            "g.V().choose(id()).option(Pick.none, out()).option(Pick.none, in())",
            "[GraphStep(vertex,[]), ChooseStep([IdStep],[none->[VertexStep(OUT,vertex)]])]",
        ),
        (
            "g.V().branch(id()).option(1, out()).option(has('a'), in()).option(Pick.any, label()).option(key())",
            "[GraphStep(vertex,[]), BranchStep([IdStep],[any->[LabelStep], any->[PropertyKeyStep], eq(1)->[VertexStep(OUT,vertex)], [TraversalFilterStep([PropertiesStep([a],value)])]->[VertexStep(IN,vertex)]])]",
        ),
    ]);
}

#[test]
fn loops() {
    let out = "VertexStep(OUT,vertex), RepeatEndStep";
    check(&[
        (
            "g.V().repeat(out()).times(2)",
            &format!("[GraphStep(vertex,[]), RepeatStep([{out}],until(loops(2)),emit(false))]"),
        ),
        (
            "g.V().times(2).repeat(out())",
            &format!("[GraphStep(vertex,[]), RepeatStep(until(loops(2)),[{out}],emit(false))]"),
        ),
        (
            "g.V().emit().repeat(out()).until(in())",
            &format!("[GraphStep(vertex,[]), RepeatStep(emit(true),[{out}],until([VertexStep(IN,vertex)]))]"),
        ),
        (
            "g.V().repeat(out()).emit(gt(1)).times(1)",
            &format!("[GraphStep(vertex,[]), RepeatStep([{out}],until(loops(1)),emit([IsStep(gt(1))]))]"),
        ),
        (
            "g.V().until(id()).emit(label()).repeat('x', out())",
            &format!("[GraphStep(vertex,[]), RepeatStep(x,until([IdStep]),emit([LabelStep]),[{out}])]"),
        ),
        (
            "g.V().repeat(out()).repeat(out()).times(1)",
            &format!(
                "[GraphStep(vertex,[]), RepeatStep([{out}],until(false),emit(false)), RepeatStep([{out}],until(loops(1)),emit(false))]"
            ),
        ),
        (
            "g.V().repeat(out()).as('a').times(1)",
            &format!("[GraphStep(vertex,[]), RepeatStep([{out}],until(loops(1)),emit(false))@[a]]"),
        ),
        // A reduction in a traversal inside the body is fine.
        (
            "g.V().repeat(local(out().count())).times(1)",
            "[GraphStep(vertex,[]), RepeatStep([LocalStep([VertexStep(OUT,vertex), CountGlobalStep]), RepeatEndStep],until(loops(1)),emit(false))]",
        ),
    ]);
}

#[test]
fn writes() {
    check(&[
        ("g.addV()", "[AddVertexStartStep]"),
        (
            "g.addV('a').property('k', 1).property(list, 'l', 2, 'm', 3).property(T.id, 4)",
            "[AddVertexStartStep({label=[a], k=[1], list:l=[2]{m=3}, id=[4]})]",
        ),
        ("g.addV().property(T.label, 'a')", "[AddVertexStartStep({label=[a]})]"),
        (
            "g.V().addV(label()).property('k', out())",
            "[GraphStep(vertex,[]), AddVertexStep({label=[[LabelStep]], k=[[VertexStep(OUT,vertex)]]})]",
        ),
        // With a cardinality, a traversal sees the new vertex; what can be folded still is.
        (
            "g.addV('a').property(single, 'k', id()).property('l', 1)",
            "[AddVertexStartStep({label=[a], l=[1]}), AddPropertyStep({single:k=[[IdStep]]})]",
        ),
        (
            "g.addV('a').as('x').property('k', 1).property([a: 1, b: Cardinality.set('c')])",
            "[AddVertexStartStep({label=[a], k=[1], a=[1], set:b=[c]})@[x]]",
        ),
        (
            "g.addV('a').property(set, [k: 1]).property(null).property(list, null)",
            "[AddVertexStartStep({label=[a], set:k=[1]})]",
        ),
        (
            "g.V().property('k', 1).property(list, 'l', 2, 'm', 3)",
            "[GraphStep(vertex,[]), AddPropertyStep({k=[1]}), AddPropertyStep({list:l=[2]{m=3}})]",
        ),
        (
            "g.addE('a').from(V(1)).to(V(2)).property('w', 0.5)",
            "[AddEdgeStartStep({label=[a], ~from=[[GraphStep(vertex,[1])]], ~to=[[GraphStep(vertex,[2])]], w=[0.5]})]",
        ),
        (
            "g.V().as('x').addE('a').to('x').property('w', 1).from('x')",
            "[GraphStep(vertex,[])@[x], AddEdgeStep({label=[a], ~from=[x], ~to=[x], w=[1]})]",
        ),
        ("g.V().drop()", "[GraphStep(vertex,[]), DropStep]"),
        ("g.addV('a').property('k', 1).with('x', 'y')", "[AddVertexStartStep({label=[a], k=[1]})]"),
    ]);
}

#[test]
fn merges() {
    check(&[
        (
            "g.mergeV([(T.label): 'a', k: 1]).option(onCreate, [l: 2]).option(onMatch, [m: 3])",
            "[MergeVertexStep({label=a, k=1},onCreate({l=2}),onMatch({m=3}))]",
        ),
        ("g.V().mergeV()", "[GraphStep(vertex,[]), MergeVertexStep]"),
        ("g.mergeV(null).option(onCreate, null)", "[MergeVertexStep(null,onCreate(null))]"),
        (
            "g.mergeV(id()).option(onMatch, sideEffect(drop()).constant([:]))",
            "[MergeVertexStep([IdStep],onMatch([TraversalSideEffectStep([DropStep]), ConstantStep({})]))]",
        ),
        (
            "g.mergeV([:]).option(onMatch, [a: Cardinality.set(1), b: 2], single).option(onCreate, [a: 3], list)",
            "[MergeVertexStep({},onCreate({a=3}:list),onMatch({a=set=1, b=2}:single))]",
        ),
        (
            "g.mergeE([(T.label): 'a', (OUT): 1, (IN): Merge.inV]).option(Merge.inV, select('x')).option(Merge.outV, [k: 1])",
            "[MergeEdgeStep({label=a, OUT=1, IN=inV},outV({k=1}),inV([SelectOneStep(last,x)]))]",
        ),
    ]);
}

#[test]
fn source_options() {
    check(&[
        ("g.withSack(1.0).V()", "{sack=1.0} [GraphStep(vertex,[])]"),
        (
            "g.withSideEffect('x', [1], addAll).withSideEffect('y', 2).V()",
            "{sideEffect:x=[1],addAll, sideEffect:y=2} [GraphStep(vertex,[])]",
        ),
        ("g.withPath().withBulk(false).V()", "{path, bulk=false} [GraphStep(vertex,[])]"),
        ("g.withBulk(false).withBulk(true).V()", "[GraphStep(vertex,[])]"),
        (
            "g.with('evaluationTimeout', 500).with('x').with('evaluationTimeout', 600).V()",
            "{evaluationTimeout=600, x=true} [GraphStep(vertex,[])]",
        ),
        ("g.withStrategies(OptionsStrategy(a: 1)).V()", "{a=1} [GraphStep(vertex,[])]"),
        (
            "g.withStrategies(ReadOnlyStrategy, new SeedStrategy(seed: 7), CountStrategy).withStrategies(SeedStrategy(seed: 8)).V()",
            "{strategies=[ReadOnlyStrategy, CountStrategy, SeedStrategy(8)]} [GraphStep(vertex,[])]",
        ),
        (
            "g.withStrategies(ReadOnlyStrategy).withoutStrategies(ReadOnlyStrategy).addV()",
            "{strategies=[without(ReadOnlyStrategy)]} [AddVertexStartStep]",
        ),
        (
            "g.withStrategies(ReferenceElementStrategy).V()",
            "{strategies=[ReferenceElementStrategy], materializeProperties=tokens} [GraphStep(vertex,[])]",
        ),
    ]);
}
