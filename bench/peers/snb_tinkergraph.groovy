// Fills TinkerGraph from the CSV files in the folder that the system property `snb` names: vertices, edges, ids and properties as
// docs/examples/mappings/snb.toml makes them. Runs when Gremlin Server starts, to which its last expression gives the traversal source `g`.

import groovy.transform.CompileStatic
import java.time.LocalDate
import java.time.LocalTime
import java.time.OffsetDateTime
import java.time.ZoneOffset
import org.apache.tinkerpop.gremlin.structure.T
import org.apache.tinkerpop.gremlin.structure.Vertex
import org.apache.tinkerpop.gremlin.structure.VertexProperty
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph

@CompileStatic
class Loader {
    static final long DAY = 86_400_000L
    final TinkerGraph graph
    final File folder = new File(System.getProperty('snb'))
    // Texts that repeat, days and ids are kept once each.
    final Map<String, String> texts = new HashMap<>()
    final Map<Long, LocalDate> days = new HashMap<>()
    final Map<String, Map<Long, Vertex>> spaces = new HashMap<>()

    Loader(TinkerGraph graph) { this.graph = graph }

    private void each(String file, Closure row) {
        new File(folder, file).withReader('UTF-8') { reader ->
            String line
            while ((line = ((BufferedReader) reader).readLine()) != null) row.call((Object) line.split('\\|', -1))
        }
    }

    private Object parse(String text, String type) {
        switch (type) {
            case 'text': return text
            case 'word': return texts.computeIfAbsent(text) { String it -> it }
            case 'number': return Long.valueOf(text)
            default:
                long millis = Long.parseLong(text), number = Math.floorDiv(millis, DAY)
                LocalDate day = days.computeIfAbsent(number) { Long it -> LocalDate.ofEpochDay(it) }
                return OffsetDateTime.of(day, LocalTime.ofNanoOfDay((millis - number * DAY) * 1_000_000L), ZoneOffset.UTC)
        }
    }

    /** `columns`: a name and a type (text, word, number, moment, words) for each column behind the id that becomes a property, else null. */
    void vertices(String file, String label, int labelColumn, String space, List<List<String>> columns) {
        Map<Long, Vertex> known = spaces.computeIfAbsent(space) { String it -> new HashMap<Long, Vertex>() }
        each(file) { String[] cells ->
            Vertex vertex = graph.addVertex(T.id, space + ':' + cells[0], T.label, labelColumn < 0 ? label : parse(cells[labelColumn], 'word'))
            for (int n = 0; n < columns.size(); n++) {
                List<String> column = columns[n]
                if (column == null || cells[n + 1].isEmpty()) continue
                if (column[1] == 'words') vertex.property(VertexProperty.Cardinality.single, column[0], cells[n + 1].split(';').toList())
                else vertex.property(VertexProperty.Cardinality.single, column[0], parse(cells[n + 1], column[1]))
            }
            known.put(Long.valueOf(cells[0]), vertex)
        }
    }

    /** An edge for each line whose two cells are filled; a property of it where a name is given, of the cell behind the two. */
    void edges(String file, String label, int from, String fromSpace, int to, String toSpace, String key = null, String type = null) {
        Map<Long, Vertex> sources = spaces[fromSpace], targets = spaces[toSpace]
        each(file) { String[] cells ->
            if (cells[from].isEmpty() || cells[to].isEmpty()) return
            Vertex source = sources.get(Long.valueOf(cells[from])), target = targets.get(Long.valueOf(cells[to]))
            if (key == null) source.addEdge(label, target)
            else source.addEdge(label, target, key, parse(cells[2], type))
        }
    }
}

def load = new Loader(graph)
load.vertices('person', 'person', -1, 'person', [['firstName', 'word'], ['lastName', 'word'], ['gender', 'word'], ['birthday', 'moment'],
    ['creationDate', 'moment'], ['locationIP', 'word'], ['browserUsed', 'word'], null, ['language', 'words'], ['email', 'words']])
load.vertices('forum', 'forum', -1, 'forum', [['title', 'text'], ['creationDate', 'moment']])
load.vertices('post', 'post', -1, 'message', [['imageFile', 'text'], ['creationDate', 'moment'], ['locationIP', 'word'], ['browserUsed', 'word'],
    ['language', 'word'], ['content', 'text'], ['length', 'number']])
load.vertices('comment', 'comment', -1, 'message', [['creationDate', 'moment'], ['locationIP', 'word'], ['browserUsed', 'word'],
    ['content', 'word'], ['length', 'number']])
load.vertices('organisation', 'organisation', -1, 'organisation', [['type', 'word'], ['name', 'text'], ['url', 'text']])
load.vertices('place', '', 3, 'place', [['name', 'text'], ['url', 'text'], ['type', 'word']])
load.vertices('tag', 'tag', -1, 'tag', [['name', 'text'], ['url', 'text']])
load.vertices('tagclass', 'tagclass', -1, 'tagclass', [['name', 'text'], ['url', 'text']])
load.edges('person', 'isLocatedIn', 0, 'person', 8, 'place')
load.edges('forum', 'hasModerator', 0, 'forum', 3, 'person')
load.edges('post', 'hasCreator', 0, 'message', 8, 'person')
load.edges('post', 'containerOf', 9, 'forum', 0, 'message')
load.edges('post', 'isLocatedIn', 0, 'message', 10, 'place')
load.edges('comment', 'hasCreator', 0, 'message', 6, 'person')
load.edges('comment', 'isLocatedIn', 0, 'message', 7, 'place')
load.edges('comment', 'replyOf', 0, 'message', 8, 'message')
load.edges('comment', 'replyOf', 0, 'message', 9, 'message')
load.edges('organisation', 'isLocatedIn', 0, 'organisation', 4, 'place')
load.edges('place', 'isPartOf', 0, 'place', 4, 'place')
load.edges('tag', 'hasType', 0, 'tag', 3, 'tagclass')
load.edges('tagclass', 'isSubclassOf', 0, 'tagclass', 3, 'tagclass')
load.edges('person_knows_person', 'knows', 0, 'person', 1, 'person', 'creationDate', 'moment')
load.edges('person_hasInterest_tag', 'hasInterest', 0, 'person', 1, 'tag')
load.edges('person_workAt_organisation', 'workAt', 0, 'person', 1, 'organisation', 'workFrom', 'number')
load.edges('person_studyAt_organisation', 'studyAt', 0, 'person', 1, 'organisation', 'classYear', 'number')
load.edges('person_likes_post', 'likes', 0, 'person', 1, 'message', 'creationDate', 'moment')
load.edges('person_likes_comment', 'likes', 0, 'person', 1, 'message', 'creationDate', 'moment')
load.edges('forum_hasMember_person', 'hasMember', 0, 'forum', 1, 'person', 'joinDate', 'moment')
load.edges('forum_hasTag_tag', 'hasTag', 0, 'forum', 1, 'tag')
load.edges('post_hasTag_tag', 'hasTag', 0, 'message', 1, 'tag')
load.edges('comment_hasTag_tag', 'hasTag', 0, 'message', 1, 'tag')

[g: traversal().withEmbedded(graph)]
